"""Every measuring mistake gpuexplore makes on purpose: a file for each kind, listed here in the order users see."""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any

from gpuexplore.activity import Activity, of_kind
from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.mistakes.catalog.contract import Mistake
from gpuexplore.hardware import check_measured_on

KIND = "mistake"  # of its activities
EXPECTED_S = 5.0  # that a demonstration takes
FILES = ("clock", "work", "data", "kernel", "cost")


def _mistakes_of(file: str) -> tuple[Mistake, ...]:
    module: Any = import_module(f"gpuexplore.features.mistakes.catalog.{file}")
    mistakes: tuple[Mistake, ...] = module.MISTAKES
    return mistakes


MISTAKES: Mapping[str, Mistake] = MappingProxyType(
    {mistake.name: mistake for file in FILES for mistake in _mistakes_of(file)}
)


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
