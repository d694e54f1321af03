"""What results mean: rates, utilization, bounds, speedups and sentences; pure arithmetic on values."""
