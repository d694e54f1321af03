"""Measured ceilings of a CPU: by short loops, saved in a file per processor."""
