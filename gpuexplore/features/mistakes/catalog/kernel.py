"""Mistakes inside a kernel of one's own."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from gpuexplore.core import Accuracy, Shape, Unsupported
from gpuexplore.core.dtypes import dtype_named
from gpuexplore.features.mistakes.catalog import (
    Demonstrate,
    Detection,
    MistakeObservation,
    Stage,
    WayReading,
    observed,
)
from gpuexplore.features.mistakes.catalog.subject import Subject, accuracy_of, factor_of, incorrect, open_subject
from gpuexplore.kernels.geometry import ELEMENT_PER_THREAD, Launch
from gpuexplore.measure.check import Reference, judge, make_inputs
from gpuexplore.measure.conditions.environment import describe_environment
from gpuexplore.operations import operation_named

# A grid of `n // threads` blocks does not cover the last elements.


def _demonstrate_grid_floor(stage: Stage) -> MistakeObservation:
    """Add two vectors block by block, on a grid that is rounded down and on one that is rounded up."""
    length = 100_000
    threads = 1024
    blocks = length // threads
    unwritten, accuracy = _launched(ELEMENT_PER_THREAD.launch((length,), (threads,), (blocks,)), length)
    unwritten_rounded_up, _ = _launched(ELEMENT_PER_THREAD.launch((length,), (threads,)), length)
    return observed(
        "grid-floor",
        what=f"vector_add at {length:,} in fp32, blocks of {threads:,} threads; elements never written",
        how="emulated",
        wrong=WayReading(unwritten),
        right=WayReading(unwritten_rounded_up),
        detection=incorrect(accuracy),
        note=f"The kernel's blocks run one after the other on the CPU: {blocks} blocks, and one more.",
        environment=describe_environment(stage.device, ["numpy"], stage.device.cores),
    )


def _launched(launch: Launch, length: int) -> tuple[int, Accuracy]:
    """Run a launch of the notebook's kernel on the CPU block by block; return how many elements it missed."""
    operation = operation_named("vector_add")
    dtype = dtype_named("fp32")
    shape = Shape.of(n=length)
    inputs = make_inputs(operation, shape, dtype, "normal")
    out = np.full(length, np.nan, np.float32)
    for block in range(launch.blocks):
        index = block * launch.threads_per_block + np.arange(launch.threads_per_block)
        index = index[index < length]  # the kernel's bounds check
        out[index] = inputs[0][index] + inputs[1][index]
    return int(np.isnan(out).sum()), judge(out.astype(np.float64), Reference(operation, dtype, inputs), shape)


# The kernel adds to its output instead of writing it, so each timed call changes the answer.


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
    return observed(
        "accumulating-output",
        what=f"{subject.what}; the error after ten calls",
        how="measured",
        wrong=WayReading(wrong.relative_error),
        right=WayReading(right.relative_error),
        detection=incorrect(accuracy_of(adding, subject.group.checked_reference)),
        factor=factor_of(wrong, right),
        note=(
            "The check fills the output with NaN first, so an accumulated sum stays NaN. "
            "The kernel also reads its output: it moves 16 bytes per element, an addition that only writes moves 12."
        ),
        environment=subject.environment,
    )


def _after_calls(subject: Subject) -> Accuracy:
    """Return the accuracy after ten calls on an output of zeros."""
    subject.candidate.out[...] = 0
    for _ in range(10):
        subject.candidate.run()
    return judge(subject.candidate.output(), subject.group.checked_reference, subject.case.shape)


# A constant `0.` makes a kernel sum in float64.
PROCESS = "gpuexplore.features.mistakes.catalog.double_constant_ptx"


def _demonstrate_double_constant(_: Stage) -> MistakeObservation:
    """Compile the notebook's kernel with and without the constant, without a GPU, and count instructions."""
    wrong, right = (_counted(ptx) for ptx in _compiled())
    return observed(
        "double-constant",
        what="float64 instructions in the PTX of matvec in fp32 for compute capability 7.5",
        how="computed",
        wrong=WayReading(wrong[0]),
        right=WayReading(right[0]),
        detection=_computes_in_f64(*wrong),
        note="Compiled by numba-cuda, which needs no GPU for it; nothing was run.",
    )


def _counted(ptx: str) -> tuple[int, int]:
    """Return how many instructions of a PTX compute in float64, or convert to or from it, and how many in float32."""
    instructions = re.findall(r"^[ \t]*(?:\{[ \t]*)?((?:add|sub|mul|fma|mad|cvt)[\w.]*)", ptx, re.M)
    f64 = sum(".f64" in instruction for instruction in instructions)
    return f64, sum(".f32" in instruction and ".f64" not in instruction for instruction in instructions)


def _computes_in_f64(f64: int, f32: int) -> Detection:
    """Return whether a kernel of fp32 arrays computes in float64."""
    return Detection(f64 > 0, f"{f64} instructions with .f64, {f32} with .f32 alone")


def _compiled() -> tuple[str, str]:
    """Return the PTX of the kernel with the constant, and of the repaired one.

    A process of its own compiles them, outside the simulator of Numba that this one may run in.

    Raises:
        Unsupported: there is no compiler here, and what it said.
    """
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_ENABLE_CUDASIM"}
    command = [sys.executable, "-m", PROCESS, "7.5"]  # of the notebook's card
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60.0, env=environment)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise Unsupported(f"the CUDA compiler failed: {last}; it takes pip install 'gpuexplore[cuda13]'")
    wrong, right = json.loads(done.stdout)
    return wrong, right


DEMONSTRATIONS: Mapping[str, Demonstrate] = {
    "grid-floor": _demonstrate_grid_floor,
    "accumulating-output": _demonstrate_accumulating_output,
    "double-constant": _demonstrate_double_constant,
}
