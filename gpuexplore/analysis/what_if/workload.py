"""Workloads: operations with their shapes, one after the other, from a single call to a transformer block.

FLOPs count a multiply-add as 2. What is between two layers and is no operation here (a transposition, an activation
function) is taken as fused into its neighbours, and costs nothing.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from gpuexplore.analysis.utilization import exceeded_bandwidth, exceeded_peak, shape_label
from gpuexplore.core import Device, InvalidInput, Peak, Run, Shape, require
from gpuexplore.core.dtypes import DType
from gpuexplore.operations import Operation, operation_named
from gpuexplore.shapes import parse_shape

MOST_NAMED = 5  # problems, of the many a pasted text can have
WANTED = "an operation, its shape and an optional repeat count, like: linear b=16384,d=32768,k=8192 x2"


@dataclass(frozen=True, slots=True)
class WorkloadLayer:
    """One operation of a workload.

    Attributes:
        name: for a reader.
        operation: its name.
        shape: of one call.
        count: calls of it in the workload.
    """

    name: str
    operation: str
    shape: Shape
    count: int = 1

    @property
    def contract(self) -> Operation:
        """The operation."""
        return operation_named(self.operation)

    @property
    def flop_count(self) -> int:
        """FLOPs of all its calls."""
        return self.count * self.contract.flop_count(self.shape)


@dataclass(frozen=True, slots=True)
class Workload:
    """Layers that run one after the other."""

    title: str
    layers: tuple[WorkloadLayer, ...]

    def __post_init__(self) -> None:
        if not self.layers:
            raise InvalidInput(f"no layers: give at least one; a layer is {WANTED}")

    @property
    def flop_count(self) -> int:
        """FLOPs of every call of every layer."""
        return sum(layer.flop_count for layer in self.layers)

    def byte_count(self, format_of: Callable[[WorkloadLayer], DType]) -> int:
        """Return the bytes moved at least: each input of each call read once, each output written once.

        These are the bytes of every array at once: an upper bound of the memory needed, because layers share arrays.

        Args:
            format_of: the format a layer's arrays are in.
        """
        return sum(layer.count * _bytes(layer, format_of) for layer in self.layers)

    def largest_bytes(self, format_of: Callable[[WorkloadLayer], DType]) -> int:
        """Return the bytes of the arrays of the largest call: memory that is needed whatever is freed between."""
        return max(_bytes(layer, format_of) for layer in self.layers)


def of_operation(operation: Operation, shape: Shape) -> Workload:
    """Return the workload that is a single call."""
    title = f"{operation.title}, {shape_label(shape)}"
    return Workload(title, (WorkloadLayer(operation.title, operation.name, shape),))


def of_run(run: Run, shape: Shape | None = None) -> Workload:
    """Return what a run measured: one call at `shape`, or at its shape with the most work."""
    operation = operation_named(run.experiment.operation)
    return of_operation(
        operation,
        shape or max(run.experiment.shapes, key=lambda candidate: (operation.flop_count(candidate), *candidate)),
    )


def parse_layers(text: str) -> Workload:
    """Return the workload of one layer a line (or separated by ``;``), like ``linear b=16,d=32,k=8 x2``.

    A shape can be a size or a preset's name.

    Raises:
        InvalidInput: a line for each of the first layers that cannot be used, with what is accepted.
    """
    lines = [line.strip() for line in re.split(r"[;\n]", text) if line.strip()]
    most = 100
    require(len(lines) <= most, "layers", f"{len(lines)} lines", f"at most {most}; repeat a layer with x2")
    layers = []
    problems = []
    for line in lines:
        try:
            layers.append(_parse_layer(line))
        except InvalidInput as error:
            problems.append(f"layer {line[:60]!r}: {error}")
    if problems:
        more = [f"{len(problems) - MOST_NAMED} more layers are invalid"] if len(problems) > MOST_NAMED else []
        raise InvalidInput("\n".join([*problems[:MOST_NAMED], *more]))
    return Workload(f"{len(layers)} layers" if len(layers) > 1 else "One layer", tuple(layers))


def transformer_block(*, batch: int, sequence: int, hidden: int, heads: int, feed_forward: int) -> Workload:
    """Return the forward pass of one block: attention and a two-layer perceptron, each with norm and residual.

    A. Vaswani et al., "Attention Is All You Need", https://arxiv.org/abs/1706.03762; the norm comes first, as since
    GPT-2. No mask, no biases; the activation function is taken as fused into the product before it.

    Raises:
        InvalidInput: the heads do not divide the hidden size, or a layer is beyond its operation's limits.
    """
    if hidden % heads:
        raise InvalidInput(f"heads {heads}: expected divisors of the hidden size, {hidden}")
    tokens = batch * sequence
    rows = (
        ("Layer norms", "layer_norm", Shape.of(m=tokens, n=hidden), 2),
        ("Queries, keys, values", "linear", Shape.of(b=tokens, d=hidden, k=3 * hidden), 1),
        ("Attention", "attention", Shape.of(b=batch, h=heads, s=sequence, d=hidden // heads), 1),
        ("Output projection", "linear", Shape.of(b=tokens, d=hidden, k=hidden), 1),
        ("Residual sums", "vector_add", Shape.of(n=tokens * hidden), 2),
        ("MLP, up projection", "linear", Shape.of(b=tokens, d=hidden, k=feed_forward), 1),
        ("MLP, down projection", "linear", Shape.of(b=tokens, d=feed_forward, k=hidden), 1),
    )
    layers = tuple(_checked(WorkloadLayer(*row)) for row in rows)
    title = f"Transformer block, {batch:,} × {sequence:,} tokens, hidden {hidden:,}"
    return Workload(title, layers)


def _checked(layer: WorkloadLayer) -> WorkloadLayer:
    """Return `layer` when its operation takes the shape."""
    try:
        parse_shape(str(layer.shape), layer.contract, measured=False)
    except InvalidInput as error:
        raise InvalidInput(f"{layer.name.lower()}: {error}") from error
    return layer


def _parse_layer(line: str) -> WorkloadLayer:
    longest = 200  # characters
    if len(line) > longest:
        raise InvalidInput(f"a line of {len(line)} characters: expected at most {longest}")
    words = line.split()
    times = re.fullmatch(r"x(\d{1,9})", words[-1]) if len(words) > 2 else None
    if len(words) < 2:
        raise InvalidInput(f"expected {WANTED}")
    operation = operation_named(words[0])
    count = int(times[1]) if times else 1
    most = 100_000
    require(1 <= count <= most, "count", count, f"x1 to x{most}")
    shape = parse_shape(" ".join(words[1:-1] if times else words[1:]), operation, measured=False)
    return WorkloadLayer(f"{operation.title}, {shape_label(shape)}", operation.name, shape, count)


def _bytes(layer: WorkloadLayer, format_of: Callable[[WorkloadLayer], DType]) -> int:
    return layer.contract.byte_count(layer.shape, format_of(layer))


# Plausibility of an entered time, by the rule that judges every published one.


def why_impossible(workload: Workload, device: Device, dtype: DType, time_s: float, *, peak: Peak | None) -> str | None:
    """Return the limit of `device` that the workload in `time_s` is far above; None where it is above none.

    Args:
        workload: what was timed.
        device: on which.
        dtype: its arrays were in.
        time_s: of the whole workload, seconds.
        peak: of the units that do the arithmetic; None where it is unknown.
    """
    above_peak = exceeded_peak(workload.flop_count, time_s, peak.flop_per_s if peak else None)
    bytes_per_s = device.bandwidth.bytes_per_s if device.bandwidth else None
    cache_bytes = device.cache_bytes
    cached = None if cache_bytes is None else cache_bytes * sum(layer.count for layer in workload.layers)
    return above_peak or exceeded_bandwidth(workload.byte_count(lambda _: dtype), time_s, bytes_per_s, cached)
