"""The worker of a self-test: the core that measures everything, the probes, and implementations that break.

The engine loads it in the device's process by its name, as it loads `gpuexplore.measure.runner` for other runs.
"""

from collections.abc import Mapping

from gpuexplore.backends import Clock
from gpuexplore.core import Device, check_known
from gpuexplore.features.selftest.suite.breaking import add_breaking
from gpuexplore.features.selftest.suite.probes import PROBES
from gpuexplore.measure.conditions.isolation import Isolation, ProgressHooks
from gpuexplore.measure.runner import measure_cases, warm_up

__all__ = ["measure_cases", "perform", "warm_up"]

add_breaking()


def perform(
    arguments: Mapping[str, str],
    device: Device,
    *,
    clock: Clock,  # noqa: ARG001 probes read the real one
    isolation: Isolation,
    progress: ProgressHooks,
) -> None:
    """Run the probe that `arguments` name, with the others as its arguments; it reports as it goes.

    Raises:
        InvalidInput: no such probe.
    """
    given = dict(arguments)
    name = given.pop("probe", "")
    check_known("probe", name, PROBES)
    for payload in PROBES[name](device, isolation, **given):
        progress.report(payload)
        if progress.cancelled():
            return
