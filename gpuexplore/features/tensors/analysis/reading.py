"""Memory traffic of reading a tensor in row order: whole lines move, however little of them is used.

Consecutive elements are read together: on a CPU as many as fill a cache line of 64 bytes, on a GPU those of a warp,
whose loads fetch sectors of 32 bytes (NVIDIA, CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory":
https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/#coalesced-access-to-global-memory).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gpuexplore.activity import Activity, of_kind
from gpuexplore.core.units import format_bytes, format_multiple
from gpuexplore.features.tensors.analysis import TensorView
from gpuexplore.kernels.geometry import WARP
from gpuexplore.kernels.strided_sum import AXES, MOST_CELLS

KIND = "strided-read"  # the activity that measures it
EXPECTED_S = 2.0
ITEMSIZE_BYTES = 4  # of the elements that are read
WAYS = ("loop", "copy")  # a loop of ours in row order, and torch's copy as in `contiguous`
LAYOUTS = ("contiguous", "strided")
NOTICEABLE = 0.1  # rows that end within a line cost a little more, and that is not called strided


# by kind of device: bytes that are moved together, at an address that is a multiple of them, and what they are called
_LINES: Mapping[str, tuple[int, str]] = {"cpu": (64, "cache lines of 64 bytes"), "cuda": (32, "sectors of 32 bytes")}


@dataclass(frozen=True, slots=True)
class _ReadTraffic:
    """Bytes that one pass over a tensor in row order moves.

    Attributes:
        used_bytes: of its elements; those of a broadcast axis count each time.
        contiguous_bytes: of the lines that are fetched, were it contiguous.
        fetched_bytes: of the lines that its groups touch, when nothing is kept from one group to the next.
        least_bytes: of the lines it lies on: each is fetched at least once, however much a cache keeps.
        kept_bytes: what a cache has to keep so that none of them is fetched again; 0 where nothing is.
        is_counted: whether every group was looked at.
    """

    used_bytes: int
    contiguous_bytes: int
    fetched_bytes: float
    least_bytes: int
    kept_bytes: int
    is_counted: bool

    @property
    def ratio(self) -> float:
        """Fetched bytes over those of the same elements in row order, without a cache."""
        return self.fetched_bytes / self.contiguous_bytes


def reading(view: TensorView, itemsize_bytes: int, kind: str) -> _ReadTraffic | None:
    """Return what reading `view` in row order fetches; None where it is empty.

    Args:
        kind: of the device, cpu or cuda.
    """
    count = view.element_count
    line, _ = _LINES[kind]
    if not count:
        return None
    size = WARP if kind == "cuda" else max(1, line // itemsize_bytes)  # of elements that are read together
    groups = -(-count // size)
    looked_at = min(groups, 128)  # of many, evenly spread
    first = (groups * number // looked_at * size for number in range(looked_at))
    lines = 0
    for start in first:
        numbers = np.arange(start, min(start + size, count))
        cells = np.dot(view.strides, np.unravel_index(numbers, view.shape)) if view.axes else numbers
        lines += np.unique((view.offset + cells) * itemsize_bytes // line).size
    contiguous = -(-count * itemsize_bytes // line) * line
    pairs = zip(view.shape, view.strides, strict=True)
    axes = [(length, stride * itemsize_bytes) for length, stride in pairs if length > 1]
    reused = [at for at, (_, stride) in enumerate(axes) if stride < line]
    return _ReadTraffic(
        count * itemsize_bytes,
        contiguous,
        lines * groups / looked_at * line,
        least_bytes=line * _least_lines(axes, itemsize_bytes, line),
        kept_bytes=max((line * _least_lines(axes[at + 1 :], itemsize_bytes, line) for at in reused), default=0),
        is_counted=groups == looked_at,
    )


def _least_lines(axes: Sequence[tuple[int, int]], itemsize_bytes: int, line: int) -> int:
    """Return how many lines elements lie on that these axes reach, the first at the begin of a line."""
    extent = itemsize_bytes
    stretches = 1
    for length, stride in sorted(axes, key=lambda axis: axis[1]):
        if stride <= max(extent, line):  # the next one begins on a line of this one, or on the next
            extent = max(extent, (length - 1) * stride + extent)
        else:
            stretches *= length
    return stretches * -(-extent // line)


def reading_sentences(reading: _ReadTraffic, kind: str) -> tuple[str, ...]:
    """Return what reading in row order fetches, and whether a cache can help."""
    _, line = _LINES[kind]
    if reading.ratio < 1 + NOTICEABLE:
        return (f"It fetches as many {line} as a contiguous tensor.",)
    about = "" if reading.is_counted else "about "
    fetched = f"{format_bytes(reading.fetched_bytes)} in {line} are fetched for {format_bytes(reading.used_bytes)} used"
    times = f"{about}{format_multiple(reading.ratio)} times as much as for a contiguous tensor"
    if reading.fetched_bytes < reading.least_bytes * (1 + NOTICEABLE):
        return (f"{fetched}: {times}.", "The rest of each line is not read later: no cache helps.")
    kept = format_bytes(reading.kept_bytes)
    least = format_bytes(reading.least_bytes)
    return (
        f"{fetched}: {times}.",
        f"A cache that keeps {kept} until the rest of each line is read lowers this to {least}.",
    )


def activity_of(view: TensorView, device_id: str) -> Activity | None:
    """Return the work for the queue that measures reading `view` on a device; None for one it cannot read."""
    arguments = _arguments_of(view)
    return None if arguments is None else of_kind(KIND, arguments, device=device_id, expected_s=EXPECTED_S)


def _arguments_of(view: TensorView) -> dict[str, str] | None:
    """Return what `measure` takes for a tensor; None for one it cannot read."""
    if not 0 < view.axes <= AXES or not 0 < max(view.span, view.element_count) <= MOST_CELLS:
        return None
    return {"shape": ",".join(map(str, view.shape)), "strides": ",".join(map(str, view.strides))}
