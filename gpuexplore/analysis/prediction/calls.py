"""The order of calls where a time is taken: what of a launch is in the time of one of them, and in a measured one."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from gpuexplore.analysis.utilization.utilization import cache_mode, device_of
from gpuexplore.core.model import CacheState, Device, Flag, Measurement, Result
from gpuexplore.hardware.torch_devices import TORCH_KINDS
from gpuexplore.recorded.published import PublishedMeasurement, Timing

Calls = Literal["graph", "queued", "single", "cold"]
USUAL_CALLS: Calls = "queued"

CALLS: Mapping[Calls, str] = {
    "graph": "replayed in a CUDA graph: the smallest launch overhead",
    "queued": "one call after another from Python or C++: a launch overlaps with the previous call",
    "single": "one call on an idle device, then a wait for it: the launch is part of the time",
    "cold": "the kernel's own time by a profiler, with cold caches on a GPU that was idle before",
}

CALLS_WORDS: Mapping[Calls, str] = {
    "graph": "calls in a CUDA graph",
    "queued": "queued calls",
    "single": "single calls",
    "cold": "kernels on an idle GPU with cold caches",
}
REPLAYED = Flag("warm", "replayed in a CUDA graph, without a flush")

# The kind of call each way of timing stands for.
CALLS_OF_TIMING: Mapping[Timing, Calls] = {
    "graph": "graph",
    "device": "graph",
    "queued": "queued",
    "do_bench": "queued",
    "best_of_many": "queued",
    "event": "single",
    "event_after_synchronize": "single",
}


@dataclass(frozen=True, slots=True)
class Conditions:
    """Facts about a call apart from its case.

    Attributes:
        calls: how calls follow one another.
        searched: the shape is the best of a search, as published ones often are.
        weight_sets: how many right-hand matrices alternate, as the layers of a network do: few stay in a cache; None
            is as usual for the operation, ROTATING_SETS for a linear layer and one for others.
        quantises: the left-hand matrix is quantised in a kernel before; None is as usual, for a linear layer in fp8.
        source: a way of taking times that has launches of its own; empty is as `calls` say.
        team: the repository of who measures; empty where it is none whose measurements are known.
    """

    calls: Calls = USUAL_CALLS
    searched: bool = False
    weight_sets: int | None = None
    quantises: bool | None = None
    source: str = ""
    team: str = ""


USUAL = Conditions()
ROTATING_SETS = 6


def conditions_of(measured: PublishedMeasurement) -> Conditions:
    """Return the conditions of a published measurement, which its text states."""
    return conditions_stated(measured.timing, measured.conditions, measured.source.repository)


def conditions_stated(timing: Timing, text: str, team: str = "") -> Conditions:
    """Return the conditions of a time that was taken in a known way, with what its text says of weights and caches."""
    is_cold = timing == "device" and "cold" in text
    return Conditions(
        "cold" if is_cold else CALLS_OF_TIMING[timing],
        weight_sets=ROTATING_SETS if "weights of 6 layers in turn" in text else 1,
        quantises="includes quantising the activations" in text,
        source="" if timing in CALLS or is_cold else timing,
        team=team,
    )


# The kind of calls of a measurement, so that it is compared with a prediction of the same kind.
#
# On a GPU a pair of events times each call, behind others that the host has enqueued meanwhile: launches are hidden,
# and the calls are queued (`gpuexplore.backends.timer`). Where a device's events have no timestamps, the host waits
# for each call that follows a flush: those are single. A short call is replayed in a CUDA graph as well.
#
# On a CPU a call returns when its work is done: its time is the same in every kind.


def calls_of(result: Result) -> Calls:
    """Return the kind of calls that the samples of a result stand for; on a CPU the default."""
    if REPLAYED in result.flags:
        return "graph"
    device = device_of(result)
    return USUAL_CALLS if device is None else calls_on(device, cache_mode(result))


def calls_on(device: Device, cache: CacheState) -> Calls:
    """Return the kind of calls that samples on `device` stand for, with the cache flushed before each or not."""
    kind = TORCH_KINDS.get(device.kind)
    return "single" if kind and kind.timed_by == "host" and cache == "cold" else USUAL_CALLS


def in_calls(result: Result, calls: Calls) -> Result | None:
    """Return a result with its time in one kind of calls; None where it was not measured in it.

    On a CPU kinds do not differ. The samples of a replayed graph, which are warm, replace the result's own.
    """
    device = device_of(result)
    if (device is not None and device.kind == "cpu") or calls_of(result) == calls:
        return result
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
    of_own_samples = frozenset({"cold", "launch_bound"})  # flags that are not true of the replay of a graph
    kept = (flag for flag in result.flags if flag.name not in of_own_samples)
    return replace(result, measurement=measurement, flags=(*kept, REPLAYED))
