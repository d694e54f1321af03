"""`gpuexplore predict`: how long an operation would take on GPUs of the table or on this machine's devices."""

import argparse
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any

from gpuexplore.analysis.prediction import CALLS, CALLS_WORDS, USUAL_CALLS, Prediction, UncertainValue
from gpuexplore.analysis.prediction.request import USUAL_DTYPES, PredictionRequest, predictions
from gpuexplore.analysis.utilization.utilization import shape_label
from gpuexplore.cli.experiment_arguments import add_operation, operation_of
from gpuexplore.cli.output import EXIT_OK, declare, print_columns, print_json, say, say_readings
from gpuexplore.core import (
    UNKNOWN,
    Device,
    Result,
    format_bytes,
    format_interval,
    format_multiple,
    format_percent,
    format_seconds,
    format_work_rate,
    not_installed,
)
from gpuexplore.core.dtypes import FORMATS, format_named
from gpuexplore.hardware import discover, ensure_ceiling, readings
from gpuexplore.operations import operation_named
from gpuexplore.shapes import split


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `predict`; values stay text."""
    add_operation(parser)
    declare(
        parser,
        {
            "--gpu LIST": {"required": True, "help": "driver names or keys of `specs`, or cpu, cuda:0 of this machine"},
            "--size LIST|RANGE": {"default": "", "help": "512,1024 or 256:8192:x2"},
            "--shape m=..|PRESET": {
                "action": "append",
                "default": [],
                "help": "one shape, or a preset; may be repeated",
            },
            "--dtype LIST": {"default": USUAL_DTYPES, "help": f"{', '.join(FORMATS)} (default: %(default)s)"},
            "--impl NAME": "an implementation (default: the vendor's library)",
        },
    )
    add_calls(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_calls(parser: argparse.ArgumentParser) -> None:
    """Declare the option that says how calls follow one another."""
    parser.add_argument(
        "--calls",
        default=USUAL_CALLS,
        metavar="LIST",
        help=f"{'; '.join(f'{name}: {about}' for name, about in CALLS.items())} (default: %(default)s)",
    )


def execute(arguments: argparse.Namespace) -> int:
    """Print the predictions, a line each with its interval."""
    if arguments.impl is not None:
        operation_named(operation_of(arguments)).implementation_named(arguments.impl)  # an empty name is none
    asked = PredictionRequest(
        operation=operation_of(arguments),
        gpus=arguments.gpu,
        sizes=arguments.size,
        shapes=";".join(arguments.shape),
        dtypes=arguments.dtype,
        implementation=arguments.impl or "",
        calls=arguments.calls,
    )
    here = [ensure_ceiling(device) if device.id in split(asked.gpus) else device for device in discover()]
    found = predictions(asked, here, measured_here(here)[::-1])  # newest last
    if arguments.json:
        predicted = [prediction_json(prediction, found) for prediction in found]
        print_json({"predictions": predicted, "readings": list(readings(split(asked.gpus)))})
    else:
        say_readings(split(asked.gpus))
        heading = ("gpu", "shape", "dtype", "predicted", "9 in 10 within", "rate", "MFU", "roof", "units")
        rows = [heading, *map(_columns, found)]
        if len({prediction.calls for prediction in found}) > 1:
            kinds = ["calls", *(prediction.calls for prediction in found)]
            rows = [(*row[:3], calls, *row[3:]) for calls, row in zip(kinds, rows, strict=True)]
        print_columns(rows)
        for sentence in (said for prediction in found for said in _ratio_sentences(prediction, found)):
            print(sentence)
        notes = [f"{prediction.case.dtype}: {prediction.reason}" for prediction in found if prediction.reason]
        notes += filter(None, map(_too_large, found))
        calls = [prediction.calls for prediction in found if prediction.device.kind != "cpu"]
        notes += [f"{CALLS_WORDS[each]}: {CALLS[each]}" for each in calls]
        notes += [
            f"{prediction.device.title}: based on {prediction.basis}" for prediction in found if prediction.time_s
        ]
        notes += [f"To improve it: {prediction.better}" for prediction in found[:1] if prediction.better]
        for note in dict.fromkeys(notes):
            print(f"  {note}")
    return EXIT_OK


def measured_here(devices: Sequence[Device]) -> tuple[Result, ...]:
    """Return the results of each device, newest first; none, and a line that says so, without the store's libraries.

    Raises:
        StoreUnavailable, InvalidInput: the database cannot be used.
    """
    try:
        from gpuexplore.store import open_store
    except ModuleNotFoundError as error:
        say(f"gpuexplore: earlier results of this machine are not used: {not_installed(error)}")
        return ()
    with open_store() as store:
        return tuple(result for device in devices for _, result in store.measured_results(device))


def prediction_json(prediction: Prediction, found: Sequence[Prediction] = ()) -> dict[str, Any]:
    """Return one entry of what `gpuexplore predict --json` prints.

    Args:
        found: all predictions, for the speedup over the first dtype of the same call.
    """
    first = _first_like(prediction, found or [prediction], "device.title")
    ratio = _ratio(first, prediction)
    return {
        "gpu": prediction.device.title,
        "operation": prediction.case.operation,
        "shape": dict(prediction.case.shape.axes),
        "dtype": prediction.case.dtype,
        "implementation": prediction.case.implementation,
        "calls": prediction.calls,
        "time_s": prediction.time_s,
        "low_s": prediction.low_s,
        "high_s": prediction.high_s,
        "flop_per_s": prediction.flop_per_s,
        "mfu": prediction.mfu,
        "peak": prediction.peak
        and {"flop_per_s": prediction.peak.flop_per_s, "kind": prediction.peak.kind, "source": prediction.peak.source},
        "bound": prediction.bound,
        "native": prediction.support == "native",
        "support": prediction.support,
        "reason": prediction.reason,
        "basis": prediction.basis,
        "nearest": [
            {
                "gpu": nearest.device,
                "operation": nearest.case.operation,
                "shape": dict(nearest.case.shape.axes),
                "dtype": nearest.case.dtype,
                "time_s": nearest.time_s,
                "relevance": nearest.relevance,
                "url": nearest.url,
            }
            for nearest in prediction.nearest
        ],
        "better": prediction.better,
        "speedup": ratio and {"baseline": first.case.dtype, "ratio": ratio.value, "low": ratio.low, "high": ratio.high},
        "fits": _fits(prediction),
    }


def _first_like(prediction: Prediction, found: Sequence[Prediction], same: str) -> Prediction:
    """Return the first prediction of the same shape, kind of calls and attribute `same`."""
    alike = [(each.case.shape, each.calls, attrgetter(same)(each)) for each in (prediction, *found)]
    return found[alike.index(alike[0], 1) - 1]


def _ratio(first: Prediction, other: Prediction) -> UncertainValue | None:
    """Return how many times as fast `other` is as `first`."""
    if first is other or first.interval_s is None or other.interval_s is None:
        return None
    times = [UncertainValue(each.time_s or 0.0, *(each.interval_s or ())) for each in (first, other)]
    return times[0].over(times[1])


def _ratio_sentences(prediction: Prediction, found: Sequence[Prediction]) -> Iterator[str]:
    """Say how fast a prediction is beside the first dtype of its device, and beside the first device."""
    of_shape = f" at {shape_label(prediction.case.shape)}" if len({each.case.shape for each in found}) > 1 else ""
    if len({each.calls for each in found}) > 1:
        of_shape += f" in {CALLS_WORDS[prediction.calls]}"
    for place, same, name in (
        (f"On {prediction.device.title}{of_shape}", "device.title", "case.dtype"),
        (f"In {prediction.case.dtype}{of_shape}", "case.dtype", "device.title"),
    ):
        pair = sorted((_first_like(prediction, found, same), prediction), key=lambda each: -(each.time_s or 0.0))
        if ratio := _ratio(*pair):
            slower, faster = map(attrgetter(name), pair)
            interval = format_interval((ratio.low, ratio.high), format_multiple)
            yield (
                f"{place}, {faster} is {format_multiple(ratio.value)} times as fast as {slower} "
                f"(9 in 10 within {interval})."
            )


def _columns(prediction: Prediction) -> tuple[str, ...]:
    bytes_per_s = _bytes(prediction) / prediction.time_s if prediction.time_s else None
    return (
        prediction.device.title,
        shape_label(prediction.case.shape),
        prediction.case.dtype,
        format_seconds(prediction.time_s),
        format_interval(prediction.interval_s, format_seconds),
        format_work_rate(prediction.flop_per_s, bytes_per_s),
        format_percent(prediction.mfu) if prediction.flop_per_s else UNKNOWN,
        prediction.bound or UNKNOWN,
        prediction.support,
    )


def _bytes(prediction: Prediction) -> int:
    return operation_named(prediction.case.operation).byte_count(
        prediction.case.shape, format_named(prediction.case.dtype)
    )


def _fits(prediction: Prediction) -> bool | None:
    """Return whether the arrays fit the device's memory; None where that is unknown."""
    return None if prediction.device.memory_bytes is None else _bytes(prediction) <= prediction.device.memory_bytes


def _too_large(prediction: Prediction) -> str | None:
    if _fits(prediction) is not False:
        return None
    needed = format_bytes(_bytes(prediction))
    there = f"{prediction.device.title} has {format_bytes(prediction.device.memory_bytes)}"
    return f"{prediction.case.dtype}: the arrays need {needed}, but {there}: they would not fit"
