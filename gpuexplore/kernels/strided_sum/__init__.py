"""Reads every element of a strided tensor in row order and adds them up as integers, so that the order is known.

A library may walk a transposed tensor in another order than its shape says, and so hide what its strides cost. Here the
loops are written out, and no pass of the compiler exchanges them. Sums of integers are exact in any order: the
contiguous case is vectorised as reading is, where a sum of floats would wait for each addition.
"""

AXES = 4  # of the kernels; missing ones have length 1
MOST_CELLS = 2**25  # 128 MiB: elements that are read, and cells of the storage they lie in
