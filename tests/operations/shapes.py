"""Shapes every implementation is checked at: those its operation names, else those for its number of axes."""

from gpuexplore.operations.awkward import awkward_shapes, shapes_of

__all__ = ["awkward_shapes", "simulated_shapes"]

SIMULATED = {  # one thread; a tile or a block and one more along each axis
    1: ((1,), (257,)),
    2: ((1, 257), (2, 3)),
    3: ((1, 1, 1), (17, 1, 33), (1, 33, 17)),
}


def simulated_shapes(operation):
    return shapes_of(operation, operation.simulated or SIMULATED.get(len(operation.axes), ()), "simulated")
