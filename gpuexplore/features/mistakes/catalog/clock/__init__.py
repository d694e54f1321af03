"""Mistakes in when the clock is read, and in what is made of its readings."""
