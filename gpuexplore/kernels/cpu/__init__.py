"""What a Numba kernel needs to drive a CPU's vector registers itself: their shape, the operands, the micro-kernel."""
