"""Products of matrices in CUDA by tiles: in shared memory for a block, in registers for a thread."""
