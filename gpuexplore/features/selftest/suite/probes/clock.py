"""The clock that a device holds: read while it multiplies matrices without a pause."""

from collections.abc import Iterator
from time import perf_counter
from typing import Any

from gpuexplore.backends import load_backend
from gpuexplore.devices import highest_clock_hz
from gpuexplore.dtypes import dtype_named
from gpuexplore.measure.candidates.candidate import build_candidate
from gpuexplore.measure.check.inputs import make_inputs
from gpuexplore.measure.conditions.idle_threads import Timekeeper
from gpuexplore.measure.conditions.watch import Watch
from gpuexplore.model import Case, Device, Options
from gpuexplore.operations import operation_named
from gpuexplore.serialization import encode
from gpuexplore.statistics import median
from gpuexplore.units import read_whole


def probe(device: Device, time: Timekeeper, *, library: str, size: str, seconds: str) -> Iterator[dict[str, Any]]:
    """Yield what the device told of itself: before, and under so many seconds of products of `size`."""
    operation, dtype = operation_named("matmul"), dtype_named("fp32")
    (name,) = (row.name for row in operation.usual if row.backend == library)
    shape = operation.shape_of_size(read_whole(size) or 1)
    case = Case(operation.name, shape, dtype.name, name, device.id, Options(cache="warm"))
    watch = Watch(device, time.wait_for_idle_threads)
    before = watch.state()
    candidate = build_candidate(
        case, operation, device, inputs=make_inputs(operation, shape, dtype, "normal"), clock=time.clock
    )
    call_s = min(candidate.first_call_s(time.clock) for _ in range(3))
    watch.look_at_busy(candidate.timer)
    calls, end_s = candidate.timer.calls_per_round(call_s), perf_counter() + float(seconds)
    samples_s: list[float] = []
    while perf_counter() < end_s:
        samples_s += candidate.timer.sample(candidate.run, calls=calls, flush=None)
    load_backend(library).synchronize(device.id)
    yield {
        "before": encode(before),
        "busy": [encode(seen) for seen in watch.busy],
        "samples": len(samples_s),
        "highest_clock_hz": highest_clock_hz(device.uuid) if device.uuid else None,
        "rate_flop_per_s": operation.flop_count(shape) / median(samples_s),
    }
