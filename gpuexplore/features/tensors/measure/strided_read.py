"""What reading a tensor against its strides costs: the same elements, contiguous and strided, in turns.

Two ways to read: a loop of ours in row order, whose order is known, and torch's copy into a contiguous tensor, which is
what `contiguous` does, and may go through the tensor in another order. Every candidate is checked before it is timed.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from gpuexplore.devices import check_measured_on, cpu_loss, read_cpu_times
from gpuexplore.devices import read as read_telemetry
from gpuexplore.errors import InvalidInput
from gpuexplore.features.tensors.measure.strided_candidates import COPY, ITEMSIZE_BYTES, LOOPS, WAYS, Layout, readers
from gpuexplore.kernels.strided_sum import AXES, MOST_CELLS
from gpuexplore.measure.check.guard import check_memory
from gpuexplore.measure.conditions.environment import describe_environment
from gpuexplore.measure.conditions.idle_threads import Timekeeper
from gpuexplore.measure.conditions.memory import free_bytes
from gpuexplore.measure.flags import condition_flags
from gpuexplore.measure.sample.in_turns import measurement_of, sample_all, warmed
from gpuexplore.model import Device, Measurement
from gpuexplore.serialization import encode
from gpuexplore.statistics import ratio_of_turns
from gpuexplore.units import read_whole

ARGUMENTS = "rows and columns, or shape and strides"


def perform(
    arguments: Mapping[str, str],
    device: Device,
    *,
    report: Callable[[Mapping[str, Any]], None],
    cancelled: Callable[[], bool],
    time: Timekeeper,
) -> None:
    """Measure and report one JSON-able object: medians with intervals, their ratios, bytes and environment.

    Args:
        arguments: ``rows`` and ``columns`` of a tensor that is read transposed, or ``shape`` and ``strides`` of what is
            read, whole numbers between commas; elements have 4 bytes.
        device: where it is read.
        report: gets the object.
        cancelled: polled between rounds.
        time: the clock, and what keeps others off the cores.

    Raises:
        InvalidInput: other arguments.
        TooLarge: the memory is not enough.
        Cancelled: the user asked to stop.
        IncorrectOutput: a candidate read something else.
    """
    report(measure_strided_read(layout_of(arguments), device, cancelled=cancelled, time=time))


def layout_of(arguments: Mapping[str, str]) -> Layout:
    """Return the shape and strides that `arguments` ask for.

    Raises:
        InvalidInput: other names, values that are no whole numbers, or too many of them.
    """
    if set(arguments) == {"rows", "columns"}:
        (rows, columns) = (_length(name, arguments[name]) for name in ("rows", "columns"))
        layout = Layout((columns, rows), (1, columns))
    elif set(arguments) == {"shape", "strides"}:
        layout = Layout(_lengths("shape", arguments["shape"], least=1), _lengths("strides", arguments["strides"]))
    else:
        raise InvalidInput.of("arguments", ", ".join(arguments), ARGUMENTS)
    if len(layout.shape) != len(layout.strides) or len(layout.shape) > AXES:
        raise InvalidInput.of("strides", arguments["strides"], f"one for each axis, of at most {AXES}")
    cells = max(layout.cell_count, layout.element_count)
    if cells > MOST_CELLS:
        raise InvalidInput.of("tensor of", f"{cells:,} elements", f"at most {MOST_CELLS:,}")
    return layout


def measure_strided_read(
    layout: Layout, device: Device, *, cancelled: Callable[[], bool], time: Timekeeper
) -> dict[str, Any]:
    """Return what reading `layout` takes on `device`, beside the same elements contiguous.

    Raises:
        TooLarge, Cancelled, IncorrectOutput, Unsupported: as `perform`.
    """
    check_measured_on(device.id, "a strided read")
    environment = describe_environment(device, (LOOPS[device.kind], COPY), threads=1)
    check_memory(layout.needed_bytes, free_bytes(device), device)
    before = read_cpu_times()
    ready = [(reader, warmed(reader.candidate, reader.check, time)) for reader in readers(layout, device, time.clock)]
    sample_all([sampling for _, sampling in ready], cancelled, time)
    environment = replace(environment, after=read_telemetry(device))
    loss = cpu_loss(before, read_cpu_times())
    for reader, _ in ready:
        reader.check()
    measured = {reader.name: measurement_of(sampling) for reader, sampling in ready}
    return {
        "shape": list(layout.shape),
        "strides": list(layout.strides),
        "itemsize_bytes": ITEMSIZE_BYTES,
        "read_bytes": layout.element_count * ITEMSIZE_BYTES,
        "threads": 1,
        "cache": "warm" if ready[0][0].candidate.flush is None else "cold",
        "readings": {
            name: _told(measurement, layout) | {"flags": encode(condition_flags(measurement, environment, loss))}
            for name, measurement in measured.items()
        },
        "ratios": {way: _ratio(measured[f"{way} strided"], measured[f"{way} contiguous"]) for way in WAYS},
        "environment": encode(environment),
    }


def _told(measurement: Measurement, layout: Layout) -> dict[str, Any]:
    return {
        "median_s": measurement.median_s,
        "ci95_s": encode(measurement.ci95_s),
        "p20_s": measurement.p20_s,
        "p80_s": measurement.p80_s,
        "n": len(measurement.samples_s),
        "first_call_s": measurement.first_call_s,
        "bytes_per_s": layout.element_count * ITEMSIZE_BYTES / measurement.median_s,
        "samples_s": list(measurement.samples_s),
    }


def _ratio(strided: Measurement, contiguous: Measurement) -> dict[str, Any]:
    """Return how many times as long the strided one takes, with the 95 % interval of the ratios round by round."""
    per_round = strided.per_round, contiguous.per_round
    ratio, ends, by_round = ratio_of_turns(strided.samples_s, contiguous.samples_s, per_round)
    count = min(len(strided.samples_s), len(contiguous.samples_s))
    return {"median": ratio, "ci95": encode(ends), "n": count, "by_round": by_round}


def _length(name: str, text: str) -> int:
    value = read_whole(text)
    if not value:
        raise InvalidInput.of(name, text, "whole numbers from 1")
    return value


def _lengths(name: str, text: str, least: int = 0) -> tuple[int, ...]:
    values = [read_whole(word) for word in text.split(",")]
    if any(value is None or value < least for value in values):
        raise InvalidInput.of(name, text, f"whole numbers from {least}, between commas")
    return tuple(value for value in values if value is not None)
