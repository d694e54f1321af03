"""The machine while it measures: its isolation, cores, clocks, the work of others, and the spread between processes."""
