"""A grid of `n // threads` blocks does not cover the last elements."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpuexplore.dtypes import dtype_named
from gpuexplore.features.mistakes.catalog.contract import Mistake, Observation, Reading, Sign, Stage
from gpuexplore.features.mistakes.catalog.subject import incorrect
from gpuexplore.kernels.geometry import ELEMENT_PER_THREAD, Launch
from gpuexplore.measure.check.elements import judge
from gpuexplore.measure.check.inputs import Reference, make_inputs
from gpuexplore.measure.conditions.environment import describe_environment
from gpuexplore.model import Accuracy, Shape
from gpuexplore.operations import operation_named

LENGTH, THREADS = 100_000, 1024


@dataclass(frozen=True, slots=True)
class Launched:
    """What a launch left behind: elements it never wrote, and the accuracy of its output."""

    unwritten: int
    accuracy: Accuracy


def demonstrate(stage: Stage) -> Observation:
    """Add two vectors block by block, on a grid that is rounded down and on one that is rounded up."""
    down = launched(ELEMENT_PER_THREAD.launch((LENGTH,), (THREADS,), (LENGTH // THREADS,)))
    up = launched(ELEMENT_PER_THREAD.launch((LENGTH,), (THREADS,)))
    return Observation(
        mistake=MISTAKE.name,
        quantity=MISTAKE.quantity,
        what=f"vector_add at {LENGTH:,} in fp32, blocks of {THREADS:,} threads; elements never written",
        how="emulated",
        wrong=Reading(down.unwritten),
        right=Reading(up.unwritten),
        detection=incorrect(down.accuracy),
        note=f"The kernel's blocks run one after the other on the CPU: {LENGTH // THREADS} of them, and one more.",
        environment=describe_environment(stage.device, ["numpy"], stage.device.cores),
    )


def launched(launch: Launch) -> Launched:
    """Return what a launch of the notebook's kernel leaves behind, run on the CPU block by block."""
    operation, dtype, shape = operation_named("vector_add"), dtype_named("fp32"), Shape.of(n=LENGTH)
    inputs = make_inputs(operation, shape, dtype, "normal")
    out = np.full(LENGTH, np.nan, np.float32)
    for block in range(launch.blocks):
        index = _indices(block, launch)
        out[index] = inputs[0][index] + inputs[1][index]
    accuracy = judge(out.astype(np.float64), Reference(operation, dtype, inputs), shape)
    return Launched(int(np.isnan(out).sum()), accuracy)


def _indices(block: int, launch: Launch) -> npt.NDArray[np.int64]:
    """Return the element of each thread of a block, where there is one."""
    index = block * launch.threads_per_block + np.arange(launch.threads_per_block)
    return index[index < LENGTH]  # the kernel's bounds check


MISTAKE = Mistake(
    name="grid-floor",
    title="Does the grid cover the output?",
    rows=("B2",),
    wrong="The number of blocks is the length over the threads of a block, rounded down.",
    right="Round up, and let each thread check that its element exists.",
    wrong_code=("blocks = n // threads      # 97 of 97.7\nkernel[blocks, threads](a, b, out)"),
    right_code=("blocks = (n + threads - 1) // threads  # 98\nkernel[blocks, threads](a, b, out)"),
    why=(
        "Each thread writes one element, so elements beyond the last block are never written. "
        "They keep what was in memory, often the right answer of the call before, and the kernel is even faster."
    ),
    quantity="count",
    gives_away=Sign("status", "incorrect"),
    live_on=("cpu",),
    elsewhere="the same blocks are missing on a GPU, whatever it is.",
    demonstrate=demonstrate,
)
