"""The machine while it measures: cores, clocks, the work of others, and what a result tells of them."""
