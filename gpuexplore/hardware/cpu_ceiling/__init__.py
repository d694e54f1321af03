"""The most that a CPU reaches: measured by short loops, kept in a file per processor."""
