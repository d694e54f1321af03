"""Sentences: why `view` fails and what repairs it, what a write changes, and what reading costs."""

from collections.abc import Sequence
from itertools import starmap

from gpuexplore.core.units import format_bytes, format_multiple
from gpuexplore.features.tensors.analysis.chain import Chain, ChainStep
from gpuexplore.features.tensors.analysis.operations import ViewRefused
from gpuexplore.features.tensors.analysis.reading import FETCHING, ReadTraffic
from gpuexplore.features.tensors.analysis.value import Indices, TensorView

MOST_ELEMENTS_NAMED = 8
NOTICEABLE = 0.1  # rows that end within a line cost a little more, and that is not called strided


def why_view_fails(view: TensorView, refused: ViewRefused) -> tuple[str, ...]:
    """Return why `view` in that shape fails on a tensor, in sentences."""
    barrier = refused.barrier
    outer, inner, shape = barrier.outer, barrier.inner, words(view.shape)
    return (
        f"The shape {words(refused.shape)} needs an axis that runs through axes {outer} and {inner} of {shape} as one.",
        f"From axis {inner} on there are {barrier.run_length} elements, {barrier.run_stride} cells apart. To go on "
        f"where they end, axis {outer} would need a stride of {barrier.run_length} × {barrier.run_stride} = "
        f"{barrier.needed_stride}; it has {barrier.stride}.",
        "One axis has one stride, and view never copies: it refuses.",
    )


def repairs(refused: ViewRefused) -> tuple[str, str]:
    """Return the two calls that do what `view` cannot: both copy."""
    shape = ", ".join(map(str, refused.shape))
    return f".contiguous().view({shape})", f".reshape({shape})"


def write_sentences(chain: Chain, write: ChainStep) -> tuple[str, ...]:
    """Return what a write changes: the cells, and what each named tensor sees of it."""
    seen = chain.seen_of(write)
    if seen is None:
        return (f"It changes {write.view.element_count:,} cells of storage {write.view.storage}.",)
    cells = sorted(set(write.view.cells()))
    listed = _listed([str(cell) for cell in cells])
    changed = f"cell {listed}" if len(cells) == 1 else f"{len(cells)} cells: {listed}"
    names = {view.storage for view in chain.names.values()}
    lost = () if write.view.storage in names else ("No named tensor looks at that storage: the write is lost.",)
    return (f"It changes {changed} of storage {write.view.storage}.", *starmap(_sight, seen.items()), *lost)


def _sight(name: str, seen: Sequence[Indices] | None) -> str:
    if seen is None:
        return f"{name} has storage of its own: nothing changes."
    if not seen:
        return f"{name} shares the storage, and does not look at these cells."
    elements = _listed([f"[{', '.join(map(str, indices))}]" if indices else "its value" for indices in seen])
    return f"{name} sees it at {elements}."


def reading_sentences(reading: ReadTraffic, kind: str) -> tuple[str, ...]:
    """Return what reading in row order fetches, and whether a cache can help."""
    line = FETCHING[kind].line
    if reading.ratio < 1 + NOTICEABLE:
        return (f"As many {line} are fetched as if it were contiguous.",)
    about = "" if reading.is_counted else "about "
    fetched = f"{format_bytes(reading.fetched_bytes)} in {line} are fetched for {format_bytes(reading.used_bytes)} used"
    times = f"{about}{format_multiple(reading.ratio)} times as much as if it were contiguous"
    if reading.fetched_bytes < reading.least_bytes * (1 + NOTICEABLE):
        return (f"{fetched}: {times}.", "The rest of each line is not read later: no cache helps.")
    kept, least = format_bytes(reading.kept_bytes), format_bytes(reading.least_bytes)
    return (
        f"{fetched}: {times}.",
        f"A cache that keeps {kept} until the rest of each line is read lowers it to {least}.",
    )


def words(lengths: Sequence[int]) -> str:
    """Return a shape or strides as Python writes them: ``(4, 4)``, ``(4,)``."""
    return f"({', '.join(map(str, lengths))}{',' if len(lengths) == 1 else ''})"


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST_ELEMENTS_NAMED
    return ", ".join(names[:MOST_ELEMENTS_NAMED]) + (f" and {more} more" if more > 0 else "")
