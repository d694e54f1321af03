"""Probes in the process that measures: each one gets a device and an isolation and yields payloads, one a figure."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from time import perf_counter, perf_counter_ns
from typing import Any

from gpuexplore.backends import BACKENDS, Call, EventTimer, Timer, load_backend
from gpuexplore.core import Case, Device, Options, Shape, Unsupported, encode, median, read_whole
from gpuexplore.core.dtypes import DTYPES, dtype_named
from gpuexplore.hardware import ASSUMED_CACHE_BYTES, highest_clock_hz, is_cut_into_instances
from gpuexplore.measure.candidates.candidate import build_candidate, device_for, new_flush
from gpuexplore.measure.check.inputs import make_inputs
from gpuexplore.measure.conditions.environment import describe_environment
from gpuexplore.measure.conditions.isolation import Isolation, ProgressHooks
from gpuexplore.measure.conditions.watch import Watch
from gpuexplore.measure.sample.prepare import sample_all, warmed
from gpuexplore.operations import operation_named
from gpuexplore.operations.compiled import recorded
from gpuexplore.operations.kernel_targets import compile_for, kernel_of

# What this process finds: versions, the driver as each library sees it, and the state of the device.


def _probe_environment(device: Device, _isolation: Isolation) -> Iterator[dict[str, Any]]:
    """Yield the environment, then what each library of the device's kind says."""
    able = [name for name in BACKENDS if device.kind in load_backend(name).DEVICE_KINDS]
    yield {
        "environment": encode(describe_environment(device, able, None)),
        "is_cut": device.uuid is not None and is_cut_into_instances(device.uuid),
    }
    for name in able:
        yield _identity(name, device)


def _identity(name: str, device: Device) -> dict[str, Any]:
    backend = load_backend(name)
    if not backend.is_available():
        return {"library": name, "install": backend.INSTALL}
    try:
        found = device_for(backend, device)
    except Unsupported as error:
        return {"library": name, "problem": str(error)}
    uuid = backend.driver_facts(device.id).uuid
    return {"library": name, "uuid": uuid, "cache_bytes": found.cache_bytes, "versions": dict(backend.versions())}


# A kernel of known length, by the timer of one library.
#
# On a GPU the kernel counts cycles. How long a cycle is, the host's clock tells: of two kernels of many milliseconds,
# the difference of their times has no launch in it. On a CPU the call reads the clock until its time is over.


def _probe_timer(device: Device, _isolation: Isolation, library: str) -> Iterator[dict[str, Any]]:
    """Yield what `library` reads for each length, cold and warm; `known_s` are the bounds of how long it took."""
    backend = load_backend(library)
    device = device_for(backend, device)
    timer = backend.timer(device.id, perf_counter_ns)
    call_of, scale = _known_calls(timer, lambda: backend.synchronize(device.id))
    yield {"library": library, "length_s": 0.0, "cache": "warm", "read_s": _read_s(timer, lambda: None, None)}
    for cache in ("warm", "cold"):
        flush = new_flush(cache, device, backend)
        for length_s in (5e-6, 20e-6, 100e-6):
            before = scale()
            nominal_s = length_s / before
            read_s = _read_s(timer, call_of(nominal_s), flush)
            known_s = sorted((nominal_s * before, nominal_s * scale()))
            yield {"library": library, "length_s": length_s, "cache": cache, "known_s": known_s, "read_s": read_s}


def _known_calls(timer: Timer, wait: Call) -> tuple[Callable[[float], Call], Callable[[], float]]:
    """Return what makes a call of so many nominal seconds, and what measures a real second over a nominal one."""
    if isinstance(timer, EventTimer):
        spin = timer.spin
        return lambda nominal_s: lambda: spin(nominal_s), lambda: _seconds_of_a_nominal_one(spin, wait)
    return _busy, lambda: 1.0


def _seconds_of_a_nominal_one(spin: Callable[[float], object], wait: Call) -> float:
    def lasted_s(nominal_s: float) -> float:
        began_ns = perf_counter_ns()
        spin(nominal_s)
        wait()
        return (perf_counter_ns() - began_ns) * 1e-9

    long_s = 10e-3  # so long that the host's clock can time it
    lasted_s(long_s)  # compiled, and the clock up
    return median([(lasted_s(3 * long_s) - lasted_s(long_s)) / (2 * long_s) for _ in range(3)])


def _busy(length_s: float) -> Call:
    length_ns = round(length_s * 1e9)

    def run() -> None:
        end_ns = perf_counter_ns() + length_ns
        while perf_counter_ns() < end_ns:
            pass

    return run


def _read_s(timer: Timer, run: Call, flush: Call | None) -> float:
    calls = 8
    timer.sample(run, calls=calls, flush=flush)
    return median([sample_s for _ in range(9) for sample_s in timer.sample(run, calls=calls, flush=flush)])


# The same copy, by the timer of one library, behind the flush of each: they must empty the cache alike.


def _probe_flush(device: Device, isolation: Isolation, library: str, flushes: str) -> Iterator[dict[str, Any]]:
    """Yield seconds of a copy of half a cache, warm and behind the flush of each library of `flushes`."""
    operation = operation_named("copy")
    dtype = DTYPES["fp32"]
    facts = device_for(load_backend(library), device)
    count = (facts.cache_bytes or ASSUMED_CACHE_BYTES) // 2 // 8  # read and written, 4 bytes each
    (name,) = (row.name for row in operation.usual if row.backend == library)
    case = Case(operation.name, Shape.of(n=max(1, count)), dtype.name, name, device.id, Options(cache="warm"))
    inputs = make_inputs(operation, case.shape, dtype, "normal")
    for flush in ("", *flushes.split(",")):
        candidate = build_candidate(case, operation, device, inputs=inputs, clock=perf_counter_ns)
        if flush:
            candidate = replace(candidate, flush=new_flush("cold", facts, load_backend(flush)))
        sampling = warmed(candidate, lambda: None, perf_counter_ns, isolation)
        sample_all([sampling], perf_counter_ns, isolation, ProgressHooks())
        yield {"library": library, "flush": flush or None, "median_s": median(sampling.samples_s)}


# The clock that a device sustains: read while it multiplies matrices without a pause.


def _probe_clock(
    device: Device, isolation: Isolation, *, library: str, size: str, seconds: str
) -> Iterator[dict[str, Any]]:
    """Yield what the device reported: before, and under so many seconds of products of `size`."""
    operation = operation_named("matmul")
    dtype = dtype_named("fp32")
    (name,) = (row.name for row in operation.usual if row.backend == library)
    shape = operation.shape_of_size(read_whole(size) or 1)
    case = Case(operation.name, shape, dtype.name, name, device.id, Options(cache="warm"))
    watch = Watch(device, isolation.wait_for_idle_threads)
    before = watch.state()
    candidate = build_candidate(
        case, operation, device, inputs=make_inputs(operation, shape, dtype, "normal"), clock=perf_counter_ns
    )
    call_s = min(candidate.first_call_s(perf_counter_ns) for _ in range(3))
    watch.look_at_busy(candidate.timer)
    calls = candidate.timer.calls_per_round(call_s)
    end_s = perf_counter() + float(seconds)
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


# The registers of a kernel that was launched, as the driver reports them, and those of the kernel that is shown.


def _probe_registers(
    device: Device, _isolation: Isolation, *, operation: str, implementation: str, dtype: str
) -> Iterator[dict[str, Any]]:
    """Yield the registers of a thread: launched, shown on this machine, and recorded with the package.

    Raises:
        Unsupported: what the device's code is compiled for is unknown.
    """
    if device.compute_capability is None:
        raise Unsupported(f"the compute capability of {device.name} is unknown: its code cannot be shown")
    known = operation_named(operation)
    kind = dtype_named(dtype)
    row = known.implementation_named(implementation)
    shape = known.shape_of_size(64)
    case = Case(operation, shape, dtype, implementation, device.id)
    inputs = make_inputs(known, shape, kind, "normal")
    build_candidate(case, known, device, inputs=inputs, clock=perf_counter_ns).first_call_s(perf_counter_ns)
    launched = kernel_of(known, row).launched_registers(kind)
    shown = compile_for(known, row, kind, None, device.compute_capability)
    kept = recorded(operation, implementation, dtype, device.compute_capability)
    yield {
        "launched": launched,
        "shown": shown.registers_per_thread,
        "toolkit": shown.toolkit,
        "recorded": kept.registers_per_thread if kept else None,
    }


PROBES: Mapping[str, Callable[..., Iterator[dict[str, Any]]]] = {
    "clock": _probe_clock,
    "environment": _probe_environment,
    "flush": _probe_flush,
    "registers": _probe_registers,
    "timer": _probe_timer,
}
