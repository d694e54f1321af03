"""Warm-up, rounds and the stopping rule: how calls become samples."""
