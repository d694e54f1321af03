"""Which kind of calls a measurement stands for, so that it is compared with a prediction of the same kind.

On a GPU a pair of events times each call, behind others that the host has enqueued meanwhile: launches are hidden, and
the calls are queued (`gpuexplore.backends.timer`). Where a device's events do not tell the time, the host waits for
each call that follows a flush: those are single. A short call is replayed in a CUDA graph as well.

On a CPU a call returns when its work is done: its time is the same in every kind.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from gpuexplore.analysis.prediction.calls import USUAL_CALLS, Calls
from gpuexplore.analysis.utilization.utilization import cache_mode, device_of
from gpuexplore.devices.torch_devices import TORCH_KINDS
from gpuexplore.model import CacheState, Device, Flag, Measurement, Result

CALLS_WORDS: Mapping[Calls, str] = MappingProxyType(
    {"graph": "calls in a CUDA graph", "queued": "queued calls", "single": "single calls"}
)
OF_OWN_SAMPLES = frozenset({"cold", "launch_bound"})  # flags that do not hold for the replay of a graph


class MeasuredCall(NamedTuple):
    """A result, and the kind of calls that its time is of; None on a CPU, where kinds do not differ."""

    result: Result
    calls: Calls | None


def calls_of(result: Result) -> Calls:
    """Return the kind of calls that the samples of a result stand for; on a CPU the default."""
    device = device_of(result)
    return USUAL_CALLS if device is None else calls_on(device, cache_mode(result))


def calls_on(device: Device, cache: CacheState) -> Calls:
    """Return the kind of calls that samples on `device` stand for, with the cache flushed before each or not."""
    kind = TORCH_KINDS.get(device.kind)
    return "single" if kind and kind.timed_by == "host" and cache == "cold" else USUAL_CALLS


def in_calls(result: Result, calls: Calls) -> MeasuredCall | None:
    """Return a result with its time in one kind of calls; None where it was not measured in it.

    The samples of a replayed graph, which are warm, replace the result's own.
    """
    device = device_of(result)
    if device is not None and device.kind == "cpu":
        return MeasuredCall(result, None)
    if calls_of(result) == calls:
        return MeasuredCall(result, calls)
    contrasts = result.measurement.contrasts if result.measurement else ()
    replayed = next((other for other in contrasts if other.condition == calls and other.samples_s), None)
    if result.measurement is None or replayed is None:
        return None
    measurement = Measurement(
        replayed.samples_s,
        result.measurement.first_call_s,
        between_processes=result.measurement.between_processes,
        between_ratios=result.measurement.between_ratios,
    )
    kept = (flag for flag in result.flags if flag.name not in OF_OWN_SAMPLES)
    flags = (*kept, Flag("warm", "replayed in a CUDA graph, without a flush"))
    return MeasuredCall(replace(result, measurement=measurement, flags=flags), calls)
