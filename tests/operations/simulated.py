"""Runs CUDA kernels in Numba's simulator and prints how far each is from the reference, as JSON.

Started with NUMBA_ENABLE_CUDASIM=1. The simulator raises IndexError for a store past the end of the output,
and what no thread writes stays NaN. It has a thread for every thread, so blocks are small here: without a word, every
kernel and dtype runs with its smallest block at the shapes of its operation; with `blocks`, every kernel runs once
with each of its blocks, and the steps of the matrix product's ladder at shapes of more than one tile.
"""

import json
import os
import subprocess
import sys
from math import prod

from gpuexplore.backends import load_backend
from gpuexplore.dtypes import DTYPES
from gpuexplore.measure.elements import judge
from gpuexplore.measure.inputs import Reference, make_inputs
from gpuexplore.model import Shape
from gpuexplore.operations import OPERATIONS, load_build
from gpuexplore.operations.matmul import REGISTER_TILES, WARP_TILES
from tests.measure.fakes import GPU
from tests.operations.shapes import simulated_shapes

DEVICE = "cuda:0"
SWITCH_S = 1e-3  # a thread of the simulator never stops asking whether the others are done; they wait for it to pause
MANY_THREADS = 256  # a block of more takes the simulator many seconds
TILES = (  # two tiles of 64, rows of whole vectors and of others; tiles that lie inside the matrices
    Shape.of(m=65, k=17, n=72),
    Shape.of(m=8, k=40, n=65),
    Shape.of(m=64, k=32, n=128),
    Shape.of(m=128, k=32, n=64),
)


def relative_error(operation, implementation, dtype, shape, block=None):
    """Return how far one kernel is from the reference, and what is allowed."""
    backend, inputs = load_backend(implementation.backend), make_inputs(operation, shape, dtype, "normal")
    out = backend.empty(operation.output(shape), dtype, DEVICE)
    backend.poison(out)
    arrays = tuple(backend.to_device(array, dtype, DEVICE) for array in inputs)
    load_build(operation, implementation)(arrays, out, dtype, block=block)()
    backend.synchronize(DEVICE)
    return judge(dtype.widen(backend.stored(out, dtype)), Reference(operation, dtype, inputs), shape)


def kernels():
    """Yield every operation and implementation with a CUDA kernel, and the dtypes it has code for."""
    for operation in OPERATIONS.values():
        for implementation in operation.implementations:
            if implementation.backend == "numba_cuda":
                supported = [
                    row
                    for row in DTYPES.values()
                    if (operation.unsupported(row) or implementation.unsupported(row, GPU)) is None
                ]
                yield operation, implementation, supported


def every_dtype():
    """Yield each kernel with each dtype at each shape, with its smallest block."""
    for operation, implementation, dtypes in kernels():
        block = min(implementation.geometry.blocks, key=prod)
        for dtype in dtypes:
            for shape in simulated_shapes(operation):
                yield operation, implementation, dtype, shape, block


def every_block():
    """Yield each kernel with each block once, and the steps of the ladder at shapes of more than one tile."""
    for operation, implementation, dtypes in kernels():
        blocks = implementation.geometry.blocks
        for place, block in enumerate(block for block in blocks if prod(block) <= MANY_THREADS):
            yield operation, implementation, dtypes[place % len(dtypes)], simulated_shapes(operation)[-1], block
        if implementation.geometry in (REGISTER_TILES, WARP_TILES) and implementation.rung:
            for place, shape in enumerate(TILES):
                for dtype in dtypes[place % 2 :: 2]:
                    yield operation, implementation, dtype, shape, blocks[-1]


def main(cases):
    """Print a plain dict for each case: what it is, its relative error and the tolerance."""
    found = []
    for operation, implementation, dtype, shape, block in cases:
        checked = relative_error(operation, implementation, dtype, shape, block)
        found.append(
            {
                "what": (operation.name, implementation.name, dtype.name, str(shape), str(block)),
                "relative_error": checked.relative_error,
                "tolerance": checked.tolerance,
                "worst": checked.worst.share if checked.worst else None,
            }
        )
    print(json.dumps(found))  # noqa: T201 the parent reads it


def simulate(*words):
    """Return what the kernels computed, from a process of its own: the simulator is chosen before Numba is loaded."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.operations.simulated", *words],
        env=os.environ | {"NUMBA_ENABLE_CUDASIM": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return {tuple(load["what"]): load for load in json.loads(done.stdout)}


def expect_right(found):
    """Assert that every element of every output was written, and rightly."""
    assert [made["what"] for made in found if made["relative_error"] is None] == []
    assert [made for made in found if made["relative_error"] > made["tolerance"] or made["worst"] > 1] == []


if __name__ == "__main__":
    sys.setswitchinterval(SWITCH_S)
    main(every_block() if sys.argv[1:] == ["blocks"] else every_dtype())
