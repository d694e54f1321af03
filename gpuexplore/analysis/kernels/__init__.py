"""Our own kernels: occupancy, block shapes, and the ladder from the naive loop to the library."""
