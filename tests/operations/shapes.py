"""Shapes every implementation is checked at, for each operation: awkward ones, and small ones for the simulator."""

from gpuexplore.model import Shape

AWKWARD_3 = ((1, 1, 1), (1, 257, 255), (255, 1, 257), (257, 255, 1), (255, 257, 33), (257, 17, 255))
AWKWARD_2 = ((1, 1), (1, 257), (255, 1), (257, 255), (255, 257))
AWKWARD_1 = ((1,), (255,), (257,))
AWKWARD = {
    "matmul": AWKWARD_3,
    "batched_matmul": (
        *((1, 1, *one, 1) for one in AWKWARD_3),
        (3, 5, 17, 33, 7, 15),
        (2, 3, 33, 17, 65, 1),
        (1, 2, 257, 17, 255, 2),
        (4, 8, 16, 32, 2, 1),
    ),
    "linear": AWKWARD_3,
    "matvec": AWKWARD_2,
    "attention": ((1, 1, 1, 1), (1, 2, 1, 65), (2, 3, 33, 17), (1, 1, 257, 64), (3, 1, 65, 256)),
    "conv2d": (
        (1, 1, 1, 1, 1, 1),
        (1, 1, 1, 1, 1, 5),
        (2, 3, 5, 7, 17, 3),
        (1, 3, 33, 257, 2, 3),
        (3, 17, 2, 3, 33, 7),
        (1, 65, 17, 15, 5, 1),
    ),
    "vector_add": AWKWARD_1,
    "multiply": AWKWARD_2,
    "triad": AWKWARD_1,
    "copy": AWKWARD_1,
    "reduce_sum": AWKWARD_2,
    "softmax": AWKWARD_2,
    "layer_norm": AWKWARD_2,
}
SIMULATED = {  # one thread; a tile or a block and one more along each axis
    "matmul": ((1, 1, 1), (17, 1, 33), (1, 33, 17)),
    "batched_matmul": ((1, 1, 1, 1, 1, 1), (2, 1, 17, 3, 17, 2), (1, 3, 2, 17, 1, 1)),
    "linear": ((1, 1, 1), (17, 1, 33), (1, 33, 17)),
    "matvec": ((1, 1), (65, 3), (3, 264)),
    "attention": ((1, 1, 1, 1), (1, 3, 3, 33), (2, 1, 2, 65)),
    "conv2d": ((1, 1, 1, 1, 1, 3), (2, 2, 9, 5, 3, 3), (1, 1, 2, 3, 1, 5)),
    "vector_add": ((1,), (257,)),
    "multiply": ((1, 1), (257, 1), (129, 3)),
    "triad": ((1,), (257,)),
    "copy": ((1,), (257,)),
    "reduce_sum": ((1, 257), (2, 3)),
    "softmax": ((1, 257), (2, 3)),
    "layer_norm": ((1, 257), (2, 3)),
}


def awkward_shapes(operation):
    return [_shape(operation, lengths) for lengths in AWKWARD[operation.name]]


def simulated_shapes(operation):
    return [_shape(operation, lengths) for lengths in SIMULATED[operation.name]]


def _shape(operation, lengths):
    shape = Shape(tuple(zip(operation.axes, lengths, strict=True)))
    assert operation.problem(shape) is None
    return shape
