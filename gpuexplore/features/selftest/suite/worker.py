"""The worker of a self-test: the core that measures everything, the probes, and implementations that break.

The engine loads it in the device's process by its name, as it loads `gpuexplore.measure.runner` for other runs.
"""

from collections.abc import Callable, Mapping
from typing import Any

from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Device
from gpuexplore.features.selftest.suite.breaking import add_breaking
from gpuexplore.features.selftest.suite.probes import PROBES
from gpuexplore.measure.conditions.idle_threads import Timekeeper
from gpuexplore.measure.runner import measure_cases, warm_up

__all__ = ["measure_cases", "perform", "warm_up"]

add_breaking()


def perform(
    arguments: Mapping[str, str],
    device: Device,
    *,
    report: Callable[[Mapping[str, Any]], None],
    cancelled: Callable[[], bool],
    time: Timekeeper,
) -> None:
    """Run the probe that `arguments` name, with the others as its arguments; it reports as it goes.

    Raises:
        InvalidInput: no such probe.
    """
    given = dict(arguments)
    name = given.pop("probe", "")
    if name not in PROBES:
        raise InvalidInput.of("probe", name, PROBES)
    for payload in PROBES[name](device, time, **given):
        report(payload)
        if cancelled():
            return
