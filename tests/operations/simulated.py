"""Runs every CUDA kernel in Numba's simulator and prints how far each is from the reference, as JSON.

Started with NUMBA_ENABLE_CUDASIM=1. The simulator raises IndexError for a store past the end of the output,
and what no thread writes stays NaN.
"""

import json

from gpuexplore.backends import load_backend
from gpuexplore.dtypes import DTYPES
from gpuexplore.measure.correctness import check, tolerance
from gpuexplore.measure.inputs import Reference, make_inputs
from gpuexplore.model import Shape
from gpuexplore.operations import OPERATIONS, load_build

DEVICE = "cuda:0"
TILED = ((1, 1, 1), (17, 1, 33), (1, 33, 17))  # one thread; a tile and one more along each axis
IN_LINE = ((1, 1), (257, 1), (129, 3))  # one thread; past one block of 256 or of 128


def shapes_of(operation):
    """Return few and small shapes: the simulator is plain Python with a thread for every thread."""
    lengths = TILED if len(operation.axes) == 3 else IN_LINE
    return dict.fromkeys(Shape(tuple(zip(operation.axes, one, strict=False))) for one in lengths)


def relative_error(operation, implementation, dtype, shape):
    """Return how far one kernel is from the reference, and what is allowed."""
    backend, inputs = load_backend(implementation.backend), make_inputs(operation, shape, dtype, "normal")
    out = backend.empty(operation.output(shape), dtype, DEVICE)
    backend.poison(out)
    arrays = tuple(backend.to_device(one, dtype, DEVICE) for one in inputs)
    load_build(operation, implementation)(arrays, out, dtype)()
    backend.synchronize(DEVICE)
    parts = Reference(operation, dtype, inputs).parts
    return check(backend.to_host(out, dtype), parts, tolerance(operation, shape, dtype))


def everything():
    """Yield a plain dict for every kernel, dtype and shape."""
    for operation in OPERATIONS.values():
        for implementation in operation.implementations:
            if implementation.backend != "numba_cuda":
                continue
            for dtype in (row for row in DTYPES.values() if not row.matrix_only):
                for shape in shapes_of(operation):
                    found = relative_error(operation, implementation, dtype, shape)
                    yield {
                        "what": (operation.name, implementation.name, dtype.name, str(shape)),
                        "relative_error": found.relative_error,
                        "tolerance": found.tolerance,
                    }


if __name__ == "__main__":
    print(json.dumps(list(everything())))  # noqa: T201 the parent reads it
