"""Every measuring mistake gpuexplore makes on purpose: one file each, listed here in the order users see."""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any

from gpuexplore.activity import Activity, of_kind
from gpuexplore.devices import check_measured_on
from gpuexplore.errors import InvalidInput
from gpuexplore.features.mistakes.catalog.contract import Mistake

KIND = "mistake"  # of its activities
EXPECTED_S = 5.0  # that a demonstration takes
FILES = (
    "clock.no_synchronise",
    "clock.first_call",
    "clock.mean_of_five",
    "clock.minimum",
    "clock.not_in_turns",
    "clock.idle_clocks",
    "work.transfer_counted",
    "work.result_allocated",
    "work.tiny_size",
    "work.warm_cache",
    "work.one_thread_baseline",
    "work.unused_result",
    "data.zeros",
    "data.all_ones",
    "data.tf32_on",
    "data.fp16_overflow",
    "data.default_allclose",
    "data.sum_one_by_one",
    "kernel.grid_floor",
    "kernel.accumulating_output",
    "kernel.double_constant",
    "cost.flops_n3",
    "cost.sparse_peak",
    "cost.rounded_peak",
    "cost.foreign_peak",
)


def _contract_of(file: str) -> Mistake:
    module: Any = import_module(f"gpuexplore.features.mistakes.catalog.{file}")
    mistake: Mistake = module.MISTAKE
    return mistake


MISTAKES: Mapping[str, Mistake] = MappingProxyType({mistake.name: mistake for mistake in map(_contract_of, FILES)})


def activity_of(name: str, device_id: str = "cpu") -> Activity:
    """Return the work for the queue that makes the mistake `name` on a device.

    Raises:
        Unsupported: mistakes were not made for this kind of device.
    """
    check_measured_on(device_id, f"the mistake {name}")
    return of_kind(KIND, {"name": name}, device=device_id, expected_s=EXPECTED_S)


def mistake_named(name: str) -> Mistake:
    """Return the mistake called `name`.

    Raises:
        InvalidInput: no such mistake.
    """
    if name not in MISTAKES:
        raise InvalidInput.of("mistake", name, MISTAKES)
    return MISTAKES[name]
