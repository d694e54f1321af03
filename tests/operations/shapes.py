"""Shapes every implementation is checked at: those its operation names, else those for its number of axes."""

from gpuexplore.operations.contract import awkward_shapes, shapes_of

__all__ = ["awkward_shapes", "simulated_shapes"]

# one element; more than a block's work, rows of odd lengths or of whole vectors, longer than fits a block; small
SIMULATED = {
    1: ((1,), (4104,), (257,)),
    2: ((1, 1), (3, 257), (2, 1032), (1, 8200), (2, 4099), (2, 3)),
    3: ((1, 1, 1), (33, 17, 65), (129, 40, 136), (1, 33, 17)),
}


def simulated_shapes(operation):
    return shapes_of(operation, operation.simulated or SIMULATED.get(len(operation.axes), ()), "simulated")
