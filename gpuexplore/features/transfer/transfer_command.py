"""`gpuexplore transfer`: moves, calls and the work measured here, and from which size a GPU beats this CPU."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from gpuexplore.analysis.prediction import calibrate
from gpuexplore.analysis.verdict import Relation
from gpuexplore.cli.activity_run import perform
from gpuexplore.cli.output import EXIT_OK, declare, print_columns, print_json, say_readings
from gpuexplore.core import Device, InvalidInput, decode, encode, format_bytes_per_s, format_interval, format_seconds
from gpuexplore.features.transfer.analysis import LINKS, OWN, SHARES, Path, measured_path, path_to, readings_of
from gpuexplore.features.transfer.analysis.comparison import (
    BreakEven,
    ComparedSide,
    SizePoint,
    break_even_size,
    compare,
    side_of,
    uses_that_pay,
    which_is_faster,
)
from gpuexplore.features.transfer.measure.contract import PARTS, TransferReadings, activity_of
from gpuexplore.hardware import check_measured_on, device_named, discover, ensure_ceiling, readings, target_named
from gpuexplore.operations import OPERATIONS, operation_named


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `transfer`."""
    declare(
        parser,
        {
            "operation OPERATION": {
                "nargs": "?",
                "default": "matmul",
                "help": f"{', '.join(OPERATIONS)} (default: matmul)",
            },
            "--gpu NAME": {"default": "Tesla T4", "help": "GPU to predict, a name of `specs` (default: %(default)s)"},
            "--link NAME": {"default": OWN, "help": f"{OWN}, the GPU's own link, or {', '.join(LINKS)}"},
            "--memory": {
                "default": "pageable",
                "choices": tuple(SHARES),
                "help": "kind of host memory (default: %(default)s)",
            },
            "--device NAME": {"default": "cpu", "help": "device to measure on: cpu or cuda:0 (default: cpu)"},
            "--predict": "measure nothing, predict the CPU too",
            "--json": "print JSON",
        },
    )


def execute(arguments: argparse.Namespace) -> int:
    """Measure unless `--predict` is given, and print what was observed and from where on the GPU wins."""
    here = discover()
    operation_named(arguments.operation)
    device = device_named(arguments.device, here)
    check_measured_on(device.id, "measuring transfers")
    gpu = target_named(arguments.gpu, ()) if device.kind == "cpu" else device
    said = [arguments.gpu] if device.kind == "cpu" else []
    path = path_to(gpu, arguments.link, arguments.memory)
    cpu = next((found for found in here if found.kind == "cpu"), None)
    if cpu is None:
        raise InvalidInput.of("device", "cpu", (found.id for found in here))
    payloads = () if arguments.predict else perform(activity_of(arguments.operation, device.id))
    observed = [decode(TransferReadings, dict(payload)) for payload in payloads]
    on_cpu = ComparedSide(ensure_ceiling(cpu))
    on_gpu = ComparedSide(gpu)
    if device.kind == "cpu":
        on_cpu = side_of(on_cpu.device, readings_of(observed, "work"))
    elif observed:
        on_gpu = side_of(device, readings_of(observed, "work"))
        path = measured_path(observed[0].link, readings_of(observed, "moves"), arguments.memory)
    points = compare(arguments.operation, (on_cpu, on_gpu), path, calibrate())
    if arguments.json:
        print_json(_report(observed, points, gpu, path) | {"readings": list(readings(said))})
    else:
        say_readings(said)
        _print(observed, points, gpu, path)
    return EXIT_OK


def _report(
    observed: Sequence[TransferReadings], points: Sequence[SizePoint], gpu: Device, path: Path
) -> dict[str, Any]:
    """Return what `gpuexplore transfer --json` prints."""
    parts = {part: [encode(reading) for reading in readings_of(observed, part)] for part in PARTS}
    sizes = [
        encode(point)
        | {"uses_that_pay": encode(uses_that_pay(point)), "faster": encode(which_is_faster(point, gpu.name))}
        for point in points
    ]
    return {
        "gpu": gpu.name,
        "link": {"title": path.title, "bytes_per_s": path.bytes_per_s, "source": path.source, "memory": path.memory},
        "measured": parts,
        "break_even_size": encode(break_even_size(points)),
        "sizes": sizes,
        "environment": encode(observed[0].environment) if observed else None,
    }


def _print(observed: Sequence[TransferReadings], points: Sequence[SizePoint], gpu: Device, path: Path) -> None:
    for part in PARTS:
        rows = [
            (
                reading.name,
                "" if not reading.byte_count else f"{reading.byte_count:,} B",
                format_seconds(reading.median_s),
                format_interval(reading.ci95_s, format_seconds),
                format_bytes_per_s(reading.bytes_per_s) if reading.bytes_per_s else "",
            )
            for reading in readings_of(observed, part)
        ]
        if rows:
            print_columns([(part, "bytes", "median", "95 % interval", "rate"), *rows])
            print()
    heading = ("size", "this CPU", f"{gpu.name} with transfers", "faster", "uses to break even")
    print_columns([heading, *map(_columns, points)])
    print(f"\n{gpu.name} wins from size {_words(break_even_size(points))}")
    print(f"predicted over {path.title}, {format_bytes_per_s(path.bytes_per_s)}, {path.memory} memory: {path.source}")


def _columns(point: SizePoint) -> tuple[str, ...]:
    cpu, gpu = (span and f"{format_seconds(span.time_s)} {span.origin}" for span in (point.cpu, point.gpu))
    words: Mapping[Relation | None, str] = {"below": "this CPU", "above": "the GPU", None: "inconclusive"}
    faster = words[which_is_faster(point, "the GPU").relation]
    return f"{point.size:,}", cpu or "—", gpu or "—", faster, _words(uses_that_pay(point))


def _words(found: BreakEven | None) -> str:
    """Return ``359 (193 to 2,119)``; ``never`` for an end that never pays, ``unknown`` where a time is unknown."""
    if found is None:
        return "unknown"
    value, low, high = ("never" if end is None else f"{end:,}" for end in (found.value, found.low, found.high))
    return f"{value} ({low} to {high})"
