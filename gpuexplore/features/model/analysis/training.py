"""A training step moment by moment: what is in memory while each layer runs forward, backward, and in the optimizer.

The step is one of many: the optimizer's state is there from the start. A peak is that of a moment, not the sum of what
each kind needs at most: activations go while gradients come, and are gone in the optimizer's step.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby

from gpuexplore.core import InvalidInput, format_gigabytes
from gpuexplore.features.model.analysis import OPTIMIZERS, SERVED, Serving, Training, check_count
from gpuexplore.features.model.analysis.memory_model import Moment, moments_of
from gpuexplore.features.model.analysis.models import LayeredModel, model_named, tape_of
from gpuexplore.features.model.analysis.parts import step_counts
from gpuexplore.features.model.analysis.tape import FULL_BYTES, NOTHING, Size, Work

MOST_BYTES = 10**17  # beyond that no table or chart counts
TRAINED_AS_USUAL = Training()
SERVED_AS_USUAL = Serving()


@dataclass(frozen=True, slots=True)
class TimelinePoint:
    """The memory contents at one moment, in bytes by kind."""

    phase: str
    layer: str
    bytes_by_kind: Mapping[str, int] = field(hash=False)

    @property
    def total_bytes(self) -> int:
        """All kinds together."""
        return sum(self.bytes_by_kind.values())

    @property
    def moment(self) -> str:
        """Say when that is, e.g. ``backward, conv 64``."""
        return f"{self.phase}, {self.layer}" if self.layer else self.phase


@dataclass(frozen=True, slots=True)
class MemoryTimeline:
    """The memory of a model over a step; each kind's maximum may be at another moment than the total's.

    Attributes:
        model: what is trained or served.
        batch: samples of a step.
        parameter_count: trained numbers.
        timeline: the moments in their order.
    """

    model: LayeredModel
    batch: int
    parameter_count: int
    timeline: tuple[TimelinePoint, ...] = field(repr=False)

    @property
    def peak(self) -> TimelinePoint:
        """The moment that needs most, the first of those that need the same."""
        return max(self.timeline, key=lambda point: point.total_bytes)

    @property
    def total_bytes(self) -> int:
        """The peak."""
        return self.peak.total_bytes

    def most(self, kind: str) -> int:
        """Return the most bytes of a kind at any moment."""
        return max(point.bytes_by_kind.get(kind, 0) for point in self.timeline)


def training_memory(model: LayeredModel | str, batch: int, setup: Training = TRAINED_AS_USUAL) -> MemoryTimeline:
    """Return what a training step of `model` needs.

    Args:
        model: or its name.
        batch: samples of a step; `setup.accumulation` divides it.
        setup: dtype, optimizer and what saves memory.

    Raises:
        InvalidInput: unknown model, or a batch, layer or setting that cannot be.
    """
    asked = model_named(model) if isinstance(model, str) else model
    timeline = _timeline_of(step_moments(asked, setup), micro_batch_of(batch, setup))
    return MemoryTimeline(asked, batch, sum(tape_of(asked, setup).weights), timeline)


def micro_batch_of(batch: int, setup: Training) -> int:
    """Return the samples that are in memory at once.

    Raises:
        InvalidInput: the batch is below 1, too large, or no multiple of the micro-batches.
    """
    check_count("batch", batch)
    micro_batch, rest = divmod(batch, setup.accumulation)
    if rest or not micro_batch:
        raise InvalidInput.of("batch", batch, f"multiples of the {setup.accumulation} micro-batches of a step")
    return micro_batch


@lru_cache(maxsize=64)
def step_moments(model: LayeredModel, setup: Training, parallel: int = 1) -> tuple[Moment, ...]:
    """Return every moment of a training step, for whatever batch, on one of the GPUs that share each layer."""
    return tuple(moments_of(tape_of(model, setup, parallel), setup, OPTIMIZERS[setup.optimizer]))


def _timeline_of(moments: Sequence[Moment], micro_batch: int) -> tuple[TimelinePoint, ...]:
    """Return the largest moment of each layer in each phase, with `micro_batch` samples in memory.

    Raises:
        InvalidInput: together they take more than MOST_BYTES.
    """
    points = []
    by_layer = groupby(moments, key=lambda moment: (moment.phase, moment.layer_index, moment.layer))
    for (phase, _, layer), group in by_layer:
        largest = max(group, key=lambda moment: moment.total.at(micro_batch))
        by_kind = {kind: size.at(micro_batch) for kind, size in largest.sizes.items()}
        points.append(TimelinePoint(phase, layer, by_kind))
    if any(point.total_bytes > MOST_BYTES for point in points):
        accepted = f"samples and layers that take {format_gigabytes(MOST_BYTES)} at most in all"
        raise InvalidInput.of("batch", micro_batch, accepted)
    return tuple(points)


def serving_memory(model: LayeredModel | str, batch: int, setup: Serving = SERVED_AS_USUAL) -> MemoryTimeline:
    """Return what serving `batch` sequences at once needs, when each has all its tokens.

    Args:
        model: one that reads tokens, or its name.
        batch: sequences at once.
        setup: dtypes and tokens.

    Raises:
        InvalidInput: unknown model, one that reads no tokens, or a batch or setting that cannot be.
    """
    asked = model_named(model) if isinstance(model, str) else model
    check_count("batch", batch)
    timeline = _timeline_of(tuple(serving_moments(asked, setup)), batch)
    return MemoryTimeline(asked, batch, step_counts(asked, Training(tokens=setup.tokens))["weights"], timeline)


def cache_bytes(model: LayeredModel, kept: int, setup: Serving = SERVED_AS_USUAL, parallel: int = 1) -> int:
    """Return the bytes of keys and values of a sequence that keeps so many tokens, from 2 on.

    2 x KV heads x head dimension x bytes of a number for each layer and token, of its window where it has one; and of
    what an encoder made.

    Raises:
        InvalidInput: the model has no attention.
    """
    start = Training(tokens=1 if model.tokens else 0)
    counts = step_counts(model, start, max(1, kept - 1), (parallel, False, True))
    cached = sum(
        work.cached_count * work.sizes[3 if work.kind == "products" else 2] * count
        for work, count in counts.items()
        if isinstance(work, Work)
    )
    if not cached or not model.generates:
        raise InvalidInput.of("model", model.name, "models that read tokens and generate some, when served")
    return int(cached * SERVED[setup.cached])


def weight_bytes(model: LayeredModel, dtype: str, parallel: int = 1) -> int:
    """Return the bytes of a server's weights: embeddings and logits stay in 16 bits, as GPTQ and AWQ leave them."""
    counts = step_counts(model, Training(tokens=1 if model.tokens else 0), how=(parallel, False, True))
    wide = counts["tables"]
    return int(wide * max(2.0, SERVED[dtype]) + (counts["weights"] - wide) * SERVED[dtype])


def serving_moments(model: LayeredModel, setup: Serving) -> Iterator[Moment]:
    """Yield the moments of a sequence: the weights alone, then each quarter of its tokens."""
    tokens = setup.tokens or model.tokens
    weights = Size(weight_bytes(model, setup.dtype))
    logits = Size(0, next(layer.sizes[-1] for layer in reversed(model.layers) if layer.sizes) * FULL_BYTES)
    loaded = {"parameters": weights, "KV cache": NOTHING, "activations": NOTHING}
    yield Moment("weights loaded", 0, "", loaded, weights)
    for quarter in range(1, 5):
        there = tokens * quarter // 4
        sizes = {"parameters": weights, "KV cache": Size(0, cache_bytes(model, there, setup)), "activations": logits}
        yield Moment("decoding", quarter, f"token {there:,}", sizes, sum(sizes.values(), NOTHING))
