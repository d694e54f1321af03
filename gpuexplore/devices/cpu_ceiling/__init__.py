"""What a CPU reaches at most: measured by short loops, kept in a file per processor."""
