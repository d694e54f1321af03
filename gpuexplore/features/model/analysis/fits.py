"""The largest batch that fits a device's memory, less what a process cannot have of it; and the question as typed."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpuexplore.core import InvalidInput, in_any_case, read_number, require
from gpuexplore.core.dtypes import spelled
from gpuexplore.features.model.analysis import LIMITS, OPTIMIZERS, Serving, Training, check_count
from gpuexplore.features.model.analysis.memory_model import Moment
from gpuexplore.features.model.analysis.models import LayeredModel
from gpuexplore.features.model.analysis.tape import Size
from gpuexplore.features.model.analysis.training import (
    MemoryTimeline,
    serving_memory,
    serving_moments,
    step_moments,
    training_memory,
)
from gpuexplore.hardware import ACCELERATORS, gpu_named

CONTEXT_SOURCE = "https://huggingface.co/docs/transformers/model_memory_anatomy"
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
CAPACITY = re.compile(r"([0-9][0-9.e+]{0,15})\s*([GT]i?B)", re.IGNORECASE)
LARGEST_CAPACITY = 10**15
GB = 1e9


@dataclass(frozen=True, slots=True)
class Reserve:
    """The memory of a device that is not available to tensors: an assumption, which can be replaced.

    Attributes:
        context_bytes: CUDA's context and the kernels of its libraries; by default as measured at CONTEXT_SOURCE.
        share: of the memory, for ECC, firmware and what the allocator cannot use; from 0 to below 1.
        stacked_share: the same of HBM, which keeps its ECC in further bits.
    """

    context_bytes: int = 1_300_000_000
    share: float = 0.07  # ECC and firmware keep 6 to 7 % of a board's memory from the driver
    stacked_share: float = 0.02  # torch finds 79.25 GiB of an A100's 80, 39.50 of 40, 23.53 of an A30's 24

    def __post_init__(self) -> None:
        require(
            0 <= self.context_bytes <= LARGEST_CAPACITY and 0 <= self.share < 1 and 0 <= self.stacked_share < 1,
            "reserve",
            f"{self.context_bytes} B and {self.share}",
            "bytes from 0, and a share",
        )

    def usable_bytes(self, memory_bytes: int, memory_type: str | None = None) -> int:
        """Return what is left of `memory_bytes` for tensors."""
        share = self.stacked_share if (memory_type or "").startswith("HBM") else self.share
        return max(0, int(memory_bytes * (1 - share)) - self.context_bytes)

    @property
    def words(self) -> str:
        """The reserve in words, e.g. ``1.3 GB and 7 % of the memory, 2 % of HBM``."""
        share = f" and {self.share:.0%} of the memory, {self.stacked_share:.0%} of HBM" if self.share else ""
        why = " for the CUDA context and its libraries, and for ECC and firmware" if self == DEFAULT_RESERVE else ""
        return f"{self.context_bytes / GB:g} GB{share.replace('%', ' %')}{why}"


DEFAULT_RESERVE = Reserve()


@dataclass(frozen=True, slots=True)
class Gpu:
    """A device by its memory; None where the table has no figure."""

    key: str
    name: str
    memory_bytes: int | None
    memory_type: str | None = None


@dataclass(frozen=True, slots=True)
class Fit:
    """The fit of a batch on a device, and the largest batch, 0 for none; None where its memory is unknown."""

    gpu: Gpu
    fits: bool | None
    largest_batch: int | None
    usable_bytes: int | None


def all_gpus() -> tuple[Gpu, ...]:
    """Return every device of the table."""
    return tuple(Gpu(row.key, row.name, row.memory_bytes, row.memory_type) for row in ACCELERATORS)


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
    number = read_number(size[1])
    unit, unit_bytes = {"gb": ("GB", 10**9), "gib": ("GiB", 2**30), "tb": ("TB", 10**12), "tib": ("TiB", 2**40)}[
        size[2].lower()
    ]
    if number is None or not 0 < number * unit_bytes <= LARGEST_CAPACITY:
        return None
    return Gpu(f"{number:g}{unit}", f"{number:g} {unit} of memory", int(number * unit_bytes))


def _gpu_named(name: str) -> Gpu:
    capacity = capacity_named(name)
    if capacity is not None:
        return capacity
    if CAPACITY.fullmatch(name.strip()):
        raise InvalidInput.of("gpu", name, f"sizes of memory above 0 and up to {LARGEST_CAPACITY // 10**9:,} GB")
    row = gpu_named(name, "; a memory size like 12GB or 24GiB; all")
    return Gpu(row.key, row.name, row.memory_bytes, row.memory_type)


def fits_of(
    model: LayeredModel,
    batch: int,
    setup: Training | Serving,
    gpus: Sequence[Gpu],
    *,
    reserve: Reserve = DEFAULT_RESERVE,
) -> tuple[Fit, ...]:
    """Return for each device whether `batch` fits, and the largest batch that does."""
    sizes = _deciding(
        step_moments(model, setup) if isinstance(setup, Training) else tuple(serving_moments(model, setup))
    )
    times = setup.accumulation if isinstance(setup, Training) else 1
    found = []
    for gpu in gpus:
        if gpu.memory_bytes is None:
            found.append(Fit(gpu, None, None, None))
            continue
        usable = reserve.usable_bytes(gpu.memory_bytes, gpu.memory_type)
        largest = min(limit for size in sizes if (limit := size.largest_batch(usable)) is not None) * times
        found.append(Fit(gpu, batch <= largest, largest, usable))
    return tuple(found)


def _deciding(moments: Sequence[Moment]) -> tuple[Size, ...]:
    """Return the few sizes of thousands that can be the limit: at every batch one of them is the largest."""
    fixed: dict[int, int] = {}
    for moment in moments:
        fixed[moment.total.per_sample] = max(fixed.get(moment.total.per_sample, 0), moment.total.fixed)
    found: list[Size] = []
    for per_sample in sorted(fixed, reverse=True):
        size = Size(fixed[per_sample], per_sample)
        if not found or size.fixed > found[-1].fixed:
            while len(found) > 1 and _is_below(found[-1], found[-2], size):
                found.pop()
            found.append(size)
    return tuple(found)


def _is_below(size: Size, before: Size, after: Size) -> bool:
    """Return whether one of two others, which grow faster and slower with the batch, is as large at every batch."""
    return (before.fixed - size.fixed) * (before.per_sample - after.per_sample) >= (
        before.per_sample - size.per_sample
    ) * (before.fixed - after.fixed)


# Settings as typed on a page or a command line, all but the model: by name; empty or missing is the default.


def batch_of(text: str, model: LayeredModel) -> int:
    """Return the batch that was typed; by default a usual one of the model.

    Raises:
        InvalidInput: no whole number from 1.
    """
    return check_count("batch", text) if text else model.batch


def setup_of(typed: Mapping[str, str], *, serves: bool = False) -> Training | Serving:
    """Return how a model is trained or served, from the fields of either class as text.

    Raises:
        InvalidInput: a value that cannot be, or one that has no meaning with the others.
    """
    given = {name: text for name, text in typed.items() if text}
    others = ("optimizer", "mixed", "checkpoints", "accumulation") if serves else ("cache_dtype",)
    for name in others:
        if name in given:
            only = "training" if serves else "serving"
            raise InvalidInput(f"{name.replace('_', ' ')} {given[name][:60]!r} applies to {only} only: leave it out")
    setup: dict[str, Any] = {name: spelled(text) for name, text in given.items()}
    setup |= {name: check_count(name, given[name]) for name in LIMITS if name in given}
    if serves:
        return Serving(**setup)
    if "optimizer" in given:
        setup["optimizer"] = in_any_case(given["optimizer"], OPTIMIZERS)
    return Training(**setup)


def reserve_of(text: str) -> Reserve:
    """Return the memory that tensors cannot have: so many GB, or by default the assumed ones.

    Raises:
        InvalidInput: no number of GB from 0.
    """
    if not text:
        return DEFAULT_RESERVE
    number = read_number(text)
    if number is None or not 0 <= number * GB <= LARGEST_CAPACITY:
        raise InvalidInput.of("reserve", text, "numbers of GB from 0, like 1.5")
    return Reserve(round(number * GB), 0.0, 0.0)


def memory_of(model: LayeredModel, batch: int, setup: Training | Serving) -> MemoryTimeline:
    """Return the memory of a training step, or of serving.

    Raises:
        InvalidInput: the batch, a layer or a setting cannot be.
    """
    return serving_memory(model, batch, setup) if isinstance(setup, Serving) else training_memory(model, batch, setup)
