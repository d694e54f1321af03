"""Mistakes in the data, and in how the answer is checked."""
