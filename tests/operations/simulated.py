"""Runs CUDA kernels in Numba's simulator and prints how far each is from the reference, as JSON.

Started with NUMBA_ENABLE_CUDASIM=1. The simulator raises IndexError for a store past the end of the output,
and what no thread writes stays NaN. It has a thread for every thread, so shapes and blocks are small here: every kernel
runs once with each of its blocks. With its usual block its PTX runs in the interpreter, in every dtype (`test_ptx`).
"""

import json
import os
import subprocess
import sys
from math import prod

from gpuexplore.backends import load_backend
from gpuexplore.core.dtypes import DTYPES
from gpuexplore.measure.check.elements import judge
from gpuexplore.measure.check.inputs import Reference, make_inputs
from gpuexplore.operations import OPERATIONS, load_build
from tests.measure.fakes import GPU
from tests.operations.shapes import simulated_shapes

DEVICE = "cuda:0"
SWITCH_S = 1e-3  # a thread of the simulator never stops asking whether the others are done; they wait for it to pause
MANY_THREADS = 256  # a block of more takes the simulator many seconds


def relative_error(operation, implementation, dtype, shape, block=None):
    """Return how far one kernel is from the reference, and what is allowed."""
    backend, inputs = load_backend(implementation.backend), make_inputs(operation, shape, dtype, "normal")
    out = backend.empty(operation.output(shape), dtype, DEVICE)
    backend.poison(out)
    arrays = tuple(backend.to_device(array, dtype, DEVICE) for array in inputs)
    load_build(operation, implementation)(arrays, out, dtype, block=block)()
    backend.synchronize(DEVICE)
    return judge(dtype.widen(backend.stored(out, dtype)), Reference(operation, dtype, inputs), shape)


def is_simulated(implementation):
    """Whether it is a CUDA kernel that the simulator can run: it has no products of warpgroups."""
    return implementation.backend == "numba_cuda" and not implementation.one_generation


def kernels():
    """Yield every operation and implementation whose CUDA kernel is simulated, and the dtypes it has code for."""
    for operation in OPERATIONS.values():
        for implementation in operation.implementations:
            if is_simulated(implementation):
                supported = [
                    row
                    for row in DTYPES.values()
                    if (operation.unsupported(row) or implementation.unsupported(row, GPU)) is None
                ]
                yield operation, implementation, supported


def every_block():
    """Yield each kernel with each block once, its dtypes in rotation."""
    for operation, implementation, dtypes in kernels():
        blocks = implementation.geometry.blocks
        for i, block in enumerate(block for block in blocks if prod(block) <= MANY_THREADS):
            yield operation, implementation, dtypes[i % len(dtypes)], simulated_shapes(operation)[-1], block


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


def simulate():
    """Return what the kernels computed, from a process of its own: the simulator is chosen before Numba is loaded."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.operations.simulated"],
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
    main(every_block())
