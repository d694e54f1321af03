"""`gpuexplore check`: a claimed time or rate against the limits of a GPU of the table or of this machine."""

import argparse
from pathlib import Path

from gpuexplore.analysis.prediction import USUAL_CALLS
from gpuexplore.analysis.prediction.request import PredictionRequest
from gpuexplore.analysis.utilization.utilization import shape_label
from gpuexplore.cli.experiment_arguments import add_operation, operation_of
from gpuexplore.cli.output import EXIT_FAILED, EXIT_OK, declare, print_columns, print_json, say_readings
from gpuexplore.cli.predict_command import add_calls, measured_here, prediction_json
from gpuexplore.core import (
    UNKNOWN,
    InvalidInput,
    format_bytes_per_s,
    format_flop_per_s,
    format_interval,
    format_percent,
    format_seconds,
)
from gpuexplore.core.dtypes import FORMATS
from gpuexplore.features.fact_check.analysis.possible import is_possible
from gpuexplore.features.fact_check.analysis.referee import VERDICTS
from gpuexplore.features.fact_check.functions import check_claims
from gpuexplore.hardware import discover, ensure_ceiling, readings

MOST_PRINTED = 50


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `check`; values stay text."""
    parser.epilog = (
        "Exit code 0: nothing is above a roof. 1: the time, or at least one of the claims, is above a roof, or a claim "
        "is invalid; unknown and slow ones are neither. 2: the arguments or the file cannot be used."
    )
    add_operation(parser)
    declare(
        parser,
        {
            "--claims FILE": {
                "type": Path,
                "help": "CSV, JSON or JSONL of claims, each with gpu, operation, dtype, shape, and time_us, tflops, "
                "gb_s or the like; the options below are for those that state none",
            },
            "--gpu NAME": {"default": "", "help": "driver name or key of `specs`, or cpu, cuda:0 of this machine"},
            "--time TIME": "claimed time of a call: 90us, 1.25ms, 2s",
            "--rate RATE": "claimed rate, instead of a time: 1.2PFLOP/s, 900TFLOPS, 3TB/s",
            "--size N": {"default": "", "help": "length of every axis"},
            "--shape m=..|PRESET": {"default": "", "help": "exact axes, or a preset, instead of a size"},
            "--dtype NAME": f"one of {', '.join(FORMATS)} (default: fp32)",
            "--impl NAME": {"default": "", "help": "implementation to compare with (default: the vendor's library)"},
        },
    )
    add_calls(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def execute(arguments: argparse.Namespace) -> int:
    """Print the verdict with its reason, or one for each claim; fail where a time is above a limit of its device."""
    if arguments.claims is not None:
        return _check_claims(arguments)
    asked = PredictionRequest(
        operation=operation_of(arguments),
        gpus=arguments.gpu,
        sizes=arguments.size,
        shapes=arguments.shape,
        dtypes=arguments.dtype or "fp32",
        implementation=arguments.impl,
        calls=arguments.calls,
    )
    here = [ensure_ceiling(device) if device.id == asked.gpus.strip() else device for device in discover()]
    found = is_possible(asked, arguments.time, here, measured_here(here)[::-1], rate=arguments.rate)  # newest last
    if arguments.json:
        print_json(
            {
                "verdict": found.verdict,
                "reason": found.reason,
                "time_s": found.time_s,
                "flop_per_s": found.flop_per_s or None,
                "bytes_per_s": found.bytes_per_s,
                "prediction": prediction_json(found.prediction),
                "readings": list(readings([asked.gpus])),
            }
        )
    else:
        say_readings([asked.gpus])
        case = found.prediction.case
        what = f"{case.operation} of {shape_label(case.shape)} in {case.dtype} on {found.prediction.device.title}"
        print(f"{what} in {format_seconds(found.time_s)}: {found.verdict}")
        flops = f"{format_flop_per_s(found.flop_per_s)} and " if found.flop_per_s else ""
        print(f"  {flops}{format_bytes_per_s(found.bytes_per_s)}; {found.reason}")
    return EXIT_OK if found else EXIT_FAILED


def _check_claims(arguments: argparse.Namespace) -> int:
    """Print the verdicts on the claims of a file, the worst first."""
    if arguments.time is not None or arguments.rate is not None:
        raise InvalidInput("--claims has times and rates of its own: give no --time and no --rate")
    found = check_claims(
        arguments.claims,
        operation=arguments.operation or arguments.operation_option,
        gpu=arguments.gpu,
        shape=arguments.shape or arguments.size,
        dtype=arguments.dtype,
        implementation=arguments.impl,
        calls="" if arguments.calls == USUAL_CALLS else arguments.calls,
    )
    worst = sorted(
        found["results"],
        key=lambda each: (
            VERDICTS.index(each["verdict"]),
            (each["ratio"] or 0) * (1 if each["verdict"] == "slow" else -1),
        ),
    )
    cells = [
        (
            result["name"],
            result["verdict"].replace("_", " "),
            format_seconds(result["time_s"]),
            format_seconds(result["roof_time_s"]),
            result["roof"] or UNKNOWN,
            format_percent(result["ratio"]),
            format_interval(result["predicted_s"] and result["predicted_s"][::2], format_seconds),
        )
        for result in worst[:MOST_PRINTED]
    ]
    if arguments.json:
        print_json(found)
    else:
        counts = ", ".join(f"{found[verdict]:,} {verdict.replace('_', ' ')}" for verdict in VERDICTS)
        print(f"{found['claims']:,} claims: {counts}{'; all are in --json' if len(worst) > MOST_PRINTED else ''}")
        print_columns(
            [("claim", "verdict", "time", "least time", "roof", "of roof", "predicted, 9 in 10 within"), *cells]
        )
        print("\n".join(f"  {result['name']}: {result['reason']}" for result in worst[:MOST_PRINTED]))
    return EXIT_FAILED if found["above_roof"] or found["invalid"] else EXIT_OK
