"""A benchmark of another harness: what it computes is unknown, so that it has times but neither work nor a peak."""

import numpy as np

from gpuexplore.core.model import Shape
from gpuexplore.operations.contract import Operation
from gpuexplore.operations.implementation import Implementation


def _named(name: str) -> Implementation:
    """Return what is known of a benchmark by its name."""
    about = f"{name}, measured by another harness"
    return Implementation(name, "", "numpy", "vector", about, device_kinds=("cpu", "cuda"), optional=True)


BENCHMARK = Operation(
    name="benchmark",
    title="Benchmark of another harness",
    formula="unknown",
    about="What it computes is not in its file: nothing follows from its times but their ratios.",
    axes=(),
    limits={},
    default_sizes=(),
    shape_of_size=lambda _: Shape(()),
    inputs=lambda _: (),
    output=lambda _: (),
    flop_count=lambda _: 0,
    reference=lambda *_: np.zeros(()),
    reduction_length=lambda _: 1,
    scale=lambda *_: 0.0,
    implementations=(),
    examples=(),
    nominal_flops=lambda _: True,
    bytes_moved=lambda *_: 0,
    of_name=_named,
)
