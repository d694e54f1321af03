"""`gpuexplore predict`: how long an operation would take on GPUs of the table or on this machine's devices."""

import argparse
from collections.abc import Sequence
from typing import Any

from gpuexplore.analysis.mfu import device_of
from gpuexplore.analysis.prediction import Prediction
from gpuexplore.analysis.prediction.question import USUAL_DTYPES, Question, predictions
from gpuexplore.analysis.rates import shape_label
from gpuexplore.analysis.same_device import same_device
from gpuexplore.cli import EXIT_OK
from gpuexplore.cli.output import print_columns, print_json
from gpuexplore.devices import discover, ensure_ceiling
from gpuexplore.dtypes import FORMATS, format_named
from gpuexplore.model import Device, Result
from gpuexplore.operations import OPERATIONS, operation_named
from gpuexplore.request import split
from gpuexplore.store import open_store
from gpuexplore.units import UNKNOWN, format_bytes, format_percent, format_seconds, format_work_rate


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `predict`; values stay text."""
    add = parser.add_argument
    add("operation", metavar="OPERATION", help=", ".join(OPERATIONS))
    add("--gpu", required=True, metavar="LIST", help="driver names or keys of `specs`, or cpu, cuda:0 of this machine")
    add("--size", default="", metavar="LIST|RANGE", help="512,1024 or 256:8192:x2")
    add("--shape", action="append", default=[], metavar="m=..|PRESET", help="one shape, or a preset; may be repeated")
    add("--dtype", default=USUAL_DTYPES, metavar="LIST", help=f"{', '.join(FORMATS)} (default: %(default)s)")
    add("--impl", default="", metavar="NAME", help="an implementation (default: the vendor's library)")
    add("--json", action="store_true", help="print JSON")


def execute(arguments: argparse.Namespace) -> int:
    """Print the predictions, a line each with its interval."""
    asked = Question(
        operation=arguments.operation,
        gpus=arguments.gpu,
        sizes=arguments.size,
        shapes=";".join(arguments.shape),
        dtypes=arguments.dtype,
        implementation=arguments.impl,
    )
    here = [ensure_ceiling(one) if one.id in split(asked.gpus) else one for one in discover()]
    found = predictions(asked, here, _own_results(here))
    if arguments.json:
        print_json({"predictions": [prediction_json(one) for one in found]})
    else:
        _print(found)
    return EXIT_OK


def _own_results(here: Sequence[Device]) -> tuple[Result, ...]:
    """Return what was measured on these devices, newest last."""
    with open_store() as store:
        found = ((device, one) for device in here for _, one in reversed(store.measured_results(device)))
        return tuple(one for device, one in found if same_device(device_of(one), device))


def prediction_json(one: Prediction) -> dict[str, Any]:
    """Return one entry of what `gpuexplore predict --json` prints."""
    return {
        "gpu": one.device.name,
        "operation": one.case.operation,
        "shape": dict(one.case.shape.axes),
        "dtype": one.case.dtype,
        "implementation": one.case.implementation,
        "time_s": one.time_s,
        "low_s": one.low_s,
        "high_s": one.high_s,
        "flop_per_s": one.flop_per_s,
        "mfu": one.mfu,
        "peak": one.peak and {"flop_per_s": one.peak.flop_per_s, "kind": one.peak.kind, "source": one.peak.source},
        "bound": one.bound,
        "native": one.support == "native",
        "support": one.support,
        "reason": one.reason,
        "basis": one.basis,
        "fits": _fits(one),
    }


def _print(found: Sequence[Prediction]) -> None:
    heading = ("gpu", "shape", "dtype", "predicted", "9 in 10 within", "rate", "MFU", "bound", "units")
    print_columns([heading, *map(_columns, found)])
    for reason in dict.fromkeys(f"{one.case.dtype}: {one.reason}" for one in found if one.reason):
        print(f"  {reason}")
    for too_large in dict.fromkeys(map(_too_large, found)):
        if too_large:
            print(f"  {too_large}")
    for basis in dict.fromkeys(f"{one.device.name}: calibrated on {one.basis}" for one in found if one.time_s):
        print(f"  {basis}")


def _columns(one: Prediction) -> tuple[str, ...]:
    bytes_per_s = _bytes_per_s(one)
    return (
        one.device.name,
        shape_label(one.case.shape),
        one.case.dtype,
        format_seconds(one.time_s),
        UNKNOWN if one.time_s is None else f"{format_seconds(one.low_s)} to {format_seconds(one.high_s)}",
        format_work_rate(one.flop_per_s, bytes_per_s),
        format_percent(one.mfu) if one.flop_per_s else UNKNOWN,
        one.bound or UNKNOWN,
        one.support,
    )


def _bytes_per_s(one: Prediction) -> float | None:
    return _bytes(one) / one.time_s if one.time_s else None


def _bytes(one: Prediction) -> int:
    return operation_named(one.case.operation).byte_count(one.case.shape, format_named(one.case.dtype))


def _fits(one: Prediction) -> bool | None:
    """Return whether the arrays fit the device's memory; None where that is unknown."""
    return None if one.device.memory_bytes is None else _bytes(one) <= one.device.memory_bytes


def _too_large(one: Prediction) -> str | None:
    if _fits(one) is not False:
        return None
    needed, there = format_bytes(_bytes(one)), format_bytes(one.device.memory_bytes)
    return f"{one.case.dtype}: the arrays need {needed}, and {one.device.name} has {there}: it would not fit"
