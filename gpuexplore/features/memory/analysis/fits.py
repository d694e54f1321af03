"""What fits where: the largest batch within a device's memory, less what a training process cannot have of it."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpuexplore.devices import ACCELERATORS, gpu_named
from gpuexplore.errors import InvalidInput
from gpuexplore.features.memory.analysis.layers.size import Size
from gpuexplore.features.memory.analysis.memory_model import Moment
from gpuexplore.features.memory.analysis.models import LayeredModel, model_named
from gpuexplore.features.memory.analysis.serving import serving_moments
from gpuexplore.features.memory.analysis.setup import Serving, Training
from gpuexplore.features.memory.analysis.training import step_moments
from gpuexplore.units import read_number

CONTEXT_BYTES = 1_300_000_000
CONTEXT_SOURCE = "https://huggingface.co/docs/transformers/model_memory_anatomy"
FIRMWARE_SHARE = 0.07  # ECC and firmware keep 6 to 7 % of a board's memory from the driver
WELL_KNOWN = (
    "t4",
    "gtx-1080-ti",
    "rtx-3060-12gb",
    "v100-sxm2-16gb",
    "l4",
    "rtx-4090",
    "rtx-5090",
    "a100-sxm4-40gb",
    "l40s",
    "a100-sxm4-80gb",
    "h100-sxm5-80gb",
    "h200-sxm-141gb",
    "b200-sxm-180gb",
    "mi300x",
)
CAPACITY = re.compile(r"([0-9][0-9.e+]{0,15})\s*(GB|GiB)", re.IGNORECASE)
UNITS = {"gb": 10**9, "gib": 2**30}
LARGEST_CAPACITY = 10**15


@dataclass(frozen=True, slots=True)
class Reserve:
    """What of a device's memory tensors cannot have: an assumption, which whoever knows better replaces.

    Attributes:
        context_bytes: CUDA's context and the kernels of its libraries; by default as measured at CONTEXT_SOURCE.
        share: of the memory, for ECC, firmware and what the allocator cannot use; from 0 to below 1.
    """

    context_bytes: int = CONTEXT_BYTES
    share: float = FIRMWARE_SHARE

    def __post_init__(self) -> None:
        if not (0 <= self.context_bytes <= LARGEST_CAPACITY and 0 <= self.share < 1):
            raise InvalidInput.of("reserve", f"{self.context_bytes} B and {self.share}", "bytes from 0, and a share")

    def usable_bytes(self, memory_bytes: int) -> int:
        """Return what is left of `memory_bytes` for tensors."""
        return max(0, int(memory_bytes * (1 - self.share)) - self.context_bytes)


NO_RESERVE = Reserve(0, 0.0)
DEFAULT_RESERVE = Reserve()


@dataclass(frozen=True, slots=True)
class Gpu:
    """A device by its memory; None where the table has no figure."""

    key: str
    name: str
    memory_bytes: int | None


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether a batch fits a device, and the largest batch that does, 0 for none; None where its memory is unknown."""

    gpu: Gpu
    fits: bool | None
    largest_batch: int | None
    usable_bytes: int | None


def all_gpus() -> tuple[Gpu, ...]:
    """Return every device of the table."""
    return tuple(Gpu(row.key, row.name, row.memory_bytes) for row in ACCELERATORS)


def gpus_named(names: Iterable[str]) -> tuple[Gpu, ...]:
    """Return devices by their names or keys, or by a size like ``12GB``; ``all`` is every one of the table.

    Raises:
        InvalidInput: there is none of that name; names those that are near.
    """
    found: dict[str, Gpu] = {}
    for name in tuple(names) or ("",):
        found |= {gpu.key: gpu for gpu in (all_gpus() if name == "all" else [_gpu_named(name)])}
    return tuple(found.values())


def capacity_named(text: str) -> Gpu | None:
    """Return a device of a memory like ``12GB`` or ``24GiB``; None for any other text, and for a size that none has."""
    size = CAPACITY.fullmatch(text.strip())
    if size is None:
        return None
    number, unit = read_number(size[1]), size[2].lower()
    if number is None or not 0 < number * UNITS[unit] <= LARGEST_CAPACITY:
        return None
    label = f"{number:g} {'GB' if unit == 'gb' else 'GiB'}"
    return Gpu(label.replace(" ", ""), f"{label} of memory", int(number * UNITS[unit]))


def _gpu_named(name: str) -> Gpu:
    capacity = capacity_named(name)
    if capacity is not None:
        return capacity
    if CAPACITY.fullmatch(name.strip()):
        raise InvalidInput.of("gpu", name, f"sizes of memory above 0 and up to {LARGEST_CAPACITY // 10**9:,} GB")
    row = gpu_named(name, "; a memory like 12GB or 24GiB; all")
    return Gpu(row.key, row.name, row.memory_bytes)


def largest_batch(
    model: LayeredModel | str, capacity_bytes: int, setup: Training | Serving, *, reserve: Reserve = NO_RESERVE
) -> int:
    """Return the largest batch whose peak is within `capacity_bytes`, 0 where not even one sample is.

    It is exact: memory is a straight line over the batch at each moment, so the smallest of their limits counts.

    Args:
        model: or its name.
        capacity_bytes: of the device.
        setup: how it is trained or served; the batch of a step is a multiple of its micro-batches.
        reserve: what of the capacity tensors cannot have; by default all of it counts.
    """
    asked = model_named(model) if isinstance(model, str) else model
    return _largest(_deciding(moments_for(asked, setup)), reserve.usable_bytes(capacity_bytes)) * _micro_batches(setup)


def fits_of(
    model: LayeredModel,
    batch: int,
    setup: Training | Serving,
    gpus: Sequence[Gpu],
    *,
    reserve: Reserve = DEFAULT_RESERVE,
) -> tuple[Fit, ...]:
    """Return for each device whether `batch` fits, and the largest batch that does."""
    sizes, times = _deciding(moments_for(model, setup)), _micro_batches(setup)

    def fit(gpu: Gpu) -> Fit:
        if gpu.memory_bytes is None:
            return Fit(gpu, None, None, None)
        usable = reserve.usable_bytes(gpu.memory_bytes)
        largest = _largest(sizes, usable) * times
        return Fit(gpu, batch <= largest, largest, usable)

    return tuple(map(fit, gpus))


def moments_for(model: LayeredModel, setup: Training | Serving) -> tuple[Moment, ...]:
    """Return the moments of a training step, or of serving."""
    return step_moments(model, setup) if isinstance(setup, Training) else tuple(serving_moments(model, setup))


def _micro_batches(setup: Training | Serving) -> int:
    return setup.accumulation if isinstance(setup, Training) else 1


def _deciding(moments: Sequence[Moment]) -> tuple[Size, ...]:
    """Return the few sizes of thousands that can be the limit: each other is at most one of them at every batch."""
    fixed: dict[int, int] = {}
    for moment in moments:
        fixed[moment.total.per_sample] = max(fixed.get(moment.total.per_sample, 0), moment.total.fixed)
    found: list[Size] = []
    for per_sample in sorted(fixed, reverse=True):
        if not found or fixed[per_sample] > found[-1].fixed:
            found.append(Size(fixed[per_sample], per_sample))
    return tuple(found)


def _largest(sizes: Sequence[Size], capacity_bytes: int) -> int:
    limits = (size.largest_batch(capacity_bytes) for size in sizes)
    return min(limit for limit in limits if limit is not None)
