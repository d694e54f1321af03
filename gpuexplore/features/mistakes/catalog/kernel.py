"""Mistakes inside a kernel of one's own."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np

from gpuexplore.core.dtypes import dtype_named
from gpuexplore.core.errors import Unsupported
from gpuexplore.core.model import Accuracy, Shape
from gpuexplore.features.mistakes.catalog.contract import (
    Detection,
    Mistake,
    MistakeObservation,
    Sign,
    Stage,
    WayReading,
)
from gpuexplore.features.mistakes.catalog.subject import Subject, accuracy_of, factor_of, incorrect, open_subject
from gpuexplore.kernels.geometry import ELEMENT_PER_THREAD, Launch
from gpuexplore.measure.check.elements import judge
from gpuexplore.measure.check.inputs import Reference, make_inputs
from gpuexplore.measure.conditions.environment import describe_environment
from gpuexplore.operations import operation_named

# A grid of `n // threads` blocks does not cover the last elements.
FLOOR_LENGTH = 100_000
FLOOR_THREADS = 1024


def _demonstrate_grid_floor(stage: Stage) -> MistakeObservation:
    """Add two vectors block by block, on a grid that is rounded down and on one that is rounded up."""
    blocks = FLOOR_LENGTH // FLOOR_THREADS
    unwritten, accuracy = launched(ELEMENT_PER_THREAD.launch((FLOOR_LENGTH,), (FLOOR_THREADS,), (blocks,)))
    unwritten_rounded_up, _ = launched(ELEMENT_PER_THREAD.launch((FLOOR_LENGTH,), (FLOOR_THREADS,)))
    return MistakeObservation(
        mistake=GRID_FLOOR.name,
        quantity=GRID_FLOOR.quantity,
        what=f"vector_add at {FLOOR_LENGTH:,} in fp32, blocks of {FLOOR_THREADS:,} threads; elements never written",
        how="emulated",
        wrong=WayReading(unwritten),
        right=WayReading(unwritten_rounded_up),
        detection=incorrect(accuracy),
        note=f"The kernel's blocks run one after the other on the CPU: {blocks} of them, and one more.",
        environment=describe_environment(stage.device, ["numpy"], stage.device.cores),
    )


def launched(launch: Launch) -> tuple[int, Accuracy]:
    """Run a launch of the notebook's kernel on the CPU block by block; return how many elements it missed."""
    operation = operation_named("vector_add")
    dtype = dtype_named("fp32")
    shape = Shape.of(n=FLOOR_LENGTH)
    inputs = make_inputs(operation, shape, dtype, "normal")
    out = np.full(FLOOR_LENGTH, np.nan, np.float32)
    for block in range(launch.blocks):
        index = block * launch.threads_per_block + np.arange(launch.threads_per_block)
        index = index[index < FLOOR_LENGTH]  # the kernel's bounds check
        out[index] = inputs[0][index] + inputs[1][index]
    return int(np.isnan(out).sum()), judge(out.astype(np.float64), Reference(operation, dtype, inputs), shape)


GRID_FLOOR = Mistake(
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
    demonstrate=_demonstrate_grid_floor,
)


# The kernel adds to its output instead of writing it, so each timed call changes the answer.
ADDED_CALLS = 10


def _demonstrate_accumulating_output(stage: Stage) -> MistakeObservation:
    """Add two vectors ten times, into the output and onto it."""
    subject = open_subject(stage, "vector_add", Shape.of(n=100_000))
    a, b = subject.group.checked_reference.inputs
    out = subject.candidate.out

    def accumulate() -> None:
        out[...] += a + b

    adding = replace(subject, candidate=replace(subject.candidate, run=accumulate))
    wrong = _after_calls(adding)
    right = _after_calls(subject)
    return MistakeObservation(
        mistake=ACCUMULATING_OUTPUT.name,
        quantity=ACCUMULATING_OUTPUT.quantity,
        what=f"{subject.what}; the error after {ADDED_CALLS} calls",
        how="measured",
        wrong=WayReading(wrong.relative_error),
        right=WayReading(right.relative_error),
        detection=incorrect(accuracy_of(adding, subject.group.checked_reference)),
        factor=factor_of(wrong, right),
        note=(
            "Before an output is checked it is filled with NaN, and what adds to it stays NaN. "
            "The kernel also reads its output: 16 bytes per element, where an addition that writes moves 12."
        ),
        environment=subject.environment,
    )


def _after_calls(subject: Subject) -> Accuracy:
    """Return the accuracy after ten calls on an output of zeros."""
    subject.candidate.out[...] = 0
    for _ in range(ADDED_CALLS):
        subject.candidate.run()
    return judge(subject.candidate.output(), subject.group.checked_reference, subject.case.shape)


ACCUMULATING_OUTPUT = Mistake(
    name="accumulating-output",
    title="Is the answer still right after the tenth call?",
    rows=("B3",),
    wrong="The kernel adds to its output, and the timing calls it a thousand times.",
    right="A timed call writes its output, and gives the same answer however often it is called.",
    wrong_code="u[i] += a[i] + b[i]",
    right_code="u[i] = a[i] + b[i]",
    why=(
        "After a thousand calls the output holds a thousand times the sum, and a comparison with NumPy would fail. "
        "It also reads what it overwrites, 16 bytes per element in place of 12, so another amount of work is timed."
    ),
    quantity="error",
    gives_away=Sign("status", "incorrect"),
    live_on=("cpu",),
    elsewhere="the arithmetic is the same on every device.",
    demonstrate=_demonstrate_accumulating_output,
)


# A constant `0.` makes a kernel sum in float64.
COMPUTE_CAPABILITY = "7.5"  # of the notebook's card
PROCESS = "gpuexplore.features.mistakes.catalog.double_constant_ptx"


def _demonstrate_double_constant(_: Stage) -> MistakeObservation:
    """Compile the notebook's kernel with and without the constant, without a GPU, and count instructions."""
    wrong, right = (counted(ptx) for ptx in compiled())
    return MistakeObservation(
        mistake=DOUBLE_CONSTANT.name,
        quantity=DOUBLE_CONSTANT.quantity,
        what=f"float64 instructions in the PTX of matvec in fp32 for compute capability {COMPUTE_CAPABILITY}",
        how="computed",
        wrong=WayReading(wrong[0]),
        right=WayReading(right[0]),
        detection=computes_in_f64(*wrong),
        note="Compiled by numba-cuda, which needs no GPU for it; nothing was run.",
    )


def counted(ptx: str) -> tuple[int, int]:
    """Return how many instructions of a PTX compute in float64, or convert to or from it, and how many in float32."""
    instructions = re.findall(r"^[ \t]*(?:\{[ \t]*)?((?:add|sub|mul|fma|mad|cvt)[\w.]*)", ptx, re.M)
    f64 = sum(".f64" in instruction for instruction in instructions)
    return f64, sum(".f32" in instruction and ".f64" not in instruction for instruction in instructions)


def computes_in_f64(f64: int, f32: int) -> Detection:
    """Return whether a kernel of fp32 arrays computes in float64."""
    return Detection(f64 > 0, f"{f64} instructions with .f64, {f32} with .f32 alone")


def compiled() -> tuple[str, str]:
    """Return the PTX of the kernel with the constant, and of the repaired one.

    A process of its own compiles them, outside the simulator of Numba that this one may run in.

    Raises:
        Unsupported: there is no compiler here, and what it said.
    """
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_ENABLE_CUDASIM"}
    command = [sys.executable, "-m", PROCESS, COMPUTE_CAPABILITY]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60.0, env=environment)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise Unsupported(f"the CUDA compiler failed: {last}; it takes pip install 'gpuexplore[cuda13]'")
    wrong, right = json.loads(done.stdout)
    return wrong, right


DOUBLE_CONSTANT = Mistake(
    name="double-constant",
    title="Which format does a kernel of fp32 arrays compute in?",
    rows=("B4", "B6"),
    wrong="The sum of a kernel starts at the constant 0., which is a float64 in Python.",
    right="Start it at a zero of the arrays' own type.",
    wrong_code=("tmp = 0.             # float64\nfor j in range(n):\n    tmp += a[row, j] * x[j]"),
    right_code=("tmp = float32(0)\nfor j in range(n):\n    tmp += a[row, j] * x[j]"),
    why=(
        "A sum of a float64 and a float32 is a float64, so every addition is one, and every product is converted. "
        "Gaming cards have a thirty-second of the units for it, or fewer: the kernel waits for them, not for memory."
    ),
    quantity="count",
    gives_away=Sign("check", ".f64 in the PTX of a kernel whose arrays are fp32"),
    demonstrate=_demonstrate_double_constant,
)


MISTAKES = (GRID_FLOOR, ACCUMULATING_OUTPUT, DOUBLE_CONSTANT)
