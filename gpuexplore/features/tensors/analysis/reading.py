"""Memory traffic of reading a tensor in row order: whole lines move, however little of them is used.

Consecutive elements are read together: on a CPU as many as fill a cache line of 64 bytes, on a GPU those of a warp,
whose loads fetch sectors of 32 bytes (NVIDIA, CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory":
https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/#coalesced-access-to-global-memory).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from gpuexplore.activity import Activity, of_kind
from gpuexplore.features.tensors.analysis.value import TensorView
from gpuexplore.kernels.geometry import WARP
from gpuexplore.kernels.strided_sum import AXES, MOST_CELLS

KIND = "strided-read"  # the activity that measures it
EXPECTED_S = 2.0
MOST_GROUPS = 128  # beyond, that many are looked at, evenly spread


@dataclass(frozen=True, slots=True)
class Fetching:
    """What a kind of device fetches at once.

    Attributes:
        line_bytes: bytes that are moved together, at an address that is a multiple of them.
        line: what these are called.
        group: elements that are read together; None: as many as fill a line.
    """

    line_bytes: int
    line: str
    group: int | None = None


FETCHING: Mapping[str, Fetching] = MappingProxyType(
    {"cpu": Fetching(64, "cache lines of 64 bytes"), "cuda": Fetching(32, "sectors of 32 bytes", WARP)}
)


@dataclass(frozen=True, slots=True)
class ReadTraffic:
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
        """How many times as many bytes are fetched as for the same elements in row order, without a cache."""
        return self.fetched_bytes / self.contiguous_bytes


def reading(view: TensorView, itemsize_bytes: int, kind: str) -> ReadTraffic | None:
    """Return what reading `view` in row order fetches; None where it is empty.

    Args:
        kind: of the device, a key of FETCHING.
    """
    count, fetching = view.element_count, FETCHING[kind]
    if not count:
        return None
    line = fetching.line_bytes
    size = fetching.group or max(1, line // itemsize_bytes)
    groups = -(-count // size)
    looked_at = min(groups, MOST_GROUPS)
    first = (groups * number // looked_at * size for number in range(looked_at))
    lines = sum(_lines(view, range(start, min(start + size, count)), itemsize_bytes, line) for start in first)
    contiguous = -(-count * itemsize_bytes // line) * line
    axes = _axes(view, itemsize_bytes)
    reused = [at for at, (_, stride) in enumerate(axes) if stride < line]
    return ReadTraffic(
        count * itemsize_bytes,
        contiguous,
        lines * groups / looked_at * line,
        least_bytes=line * _least_lines(axes, itemsize_bytes, line),
        kept_bytes=max((line * _least_lines(axes[at + 1 :], itemsize_bytes, line) for at in reused), default=0),
        is_counted=groups == looked_at,
    )


def _lines(view: TensorView, numbers: range, itemsize_bytes: int, line: int) -> int:
    """Return how many lines the elements touch that have these numbers in row order."""
    return len({_cell(view, number) * itemsize_bytes // line for number in numbers})


def _cell(view: TensorView, number: int) -> int:
    cell = view.offset
    for length, stride in zip(reversed(view.shape), reversed(view.strides), strict=True):
        number, index = divmod(number, length)
        cell += index * stride
    return cell


def _axes(view: TensorView, itemsize_bytes: int) -> list[tuple[int, int]]:
    """Return length and stride in bytes of the axes that are longer than 1."""
    pairs = zip(view.shape, view.strides, strict=True)
    return [(length, stride * itemsize_bytes) for length, stride in pairs if length > 1]


def _least_lines(axes: Sequence[tuple[int, int]], itemsize_bytes: int, line: int) -> int:
    """Return how many lines elements lie on that these axes reach, the first at the begin of a line."""
    extent, stretches = itemsize_bytes, 1
    for length, stride in sorted(axes, key=lambda axis: axis[1]):
        if stride <= max(extent, line):  # the next one begins on a line of this one, or on the next
            extent = max(extent, (length - 1) * stride + extent)
        else:
            stretches *= length
    return stretches * -(-extent // line)


def activity_of(view: TensorView, device_id: str) -> Activity | None:
    """Return the work for the queue that measures reading `view` on a device; None for one it cannot read."""
    arguments = arguments_of(view)
    return None if arguments is None else of_kind(KIND, arguments, device=device_id, expected_s=EXPECTED_S)


def arguments_of(view: TensorView) -> dict[str, str] | None:
    """Return what `measure` takes for a tensor; None for one it cannot read."""
    if not 0 < view.axes <= AXES or not 0 < max(view.span, view.element_count) <= MOST_CELLS:
        return None
    return {"shape": ",".join(map(str, view.shape)), "strides": ",".join(map(str, view.strides))}
