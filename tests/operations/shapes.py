"""Shapes every implementation is checked at: those its operation names, else those for its number of axes."""

from gpuexplore.model import Shape

AWKWARD = {
    1: ((1,), (255,), (257,)),
    2: ((1, 1), (1, 257), (255, 1), (257, 255), (255, 257)),
    3: ((1, 1, 1), (1, 257, 255), (255, 1, 257), (257, 255, 1), (255, 257, 33), (257, 17, 255)),
}
SIMULATED = {  # one element; more than a block's work, rows of odd lengths or of whole vectors; small
    1: ((1,), (4104,), (257,)),
    2: ((1, 1), (3, 257), (2, 1032), (2, 3)),
    3: ((1, 1, 1), (33, 17, 65), (129, 40, 136), (1, 33, 17)),
}


def awkward_shapes(operation):
    return _shapes(operation, operation.awkward or AWKWARD.get(len(operation.axes)), "awkward")


def simulated_shapes(operation):
    return _shapes(operation, operation.simulated or SIMULATED.get(len(operation.axes)), "simulated")


def _shapes(operation, listed, field):
    assert listed, f"{operation.name} has {len(operation.axes)} axes: give lengths worth testing in `{field}=`"
    shapes = [Shape(tuple(zip(operation.axes, lengths, strict=True))) for lengths in listed]
    assert [operation.problem(shape) for shape in shapes] == [None] * len(shapes), f"give other lengths in `{field}=`"
    return shapes
