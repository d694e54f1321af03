"""The best plausible results of each device: its large products by dtype and unit, and its streams."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from gpuexplore.analysis.model import Context
from gpuexplore.analysis.utilization.measured_ceiling import best_rate, is_large_product, is_stream
from gpuexplore.analysis.utilization.plausibility import is_ranked
from gpuexplore.analysis.utilization.utilization import arithmetic_of, device_of
from gpuexplore.devices.identity import UnitKey, unit_key
from gpuexplore.model import Result, Unit

_Key = tuple[UnitKey, str | None, Unit | None]


def best_of(results: Iterable[Result]) -> tuple[Result, ...]:
    """Return the fastest large product of each device, dtype and unit, and the fastest stream of each device."""
    best: dict[_Key, Result] = {}
    for result in results:
        key = _key(result)
        if key is not None and (key not in best or best_rate(result) > best_rate(best[key])) and is_ranked(result):
            best[key] = result
    return tuple(best.values())


def with_measured_ceilings(context: Context, results: Sequence[Result]) -> Context:
    """Return `context` with the best of `results` among what is known, so that they can be a measured peak."""
    return replace(context, earlier=best_of((*context.earlier, *results)))


def _key(result: Result) -> _Key | None:
    device = device_of(result)
    if device is None:
        return None
    if is_large_product(result):
        return (unit_key(device), *arithmetic_of(result))
    return (unit_key(device), None, None) if is_stream(result) else None
