"""`gpuexplore check`: a claimed time or rate against the limits of a GPU of the table or of this machine."""

import argparse

from gpuexplore.analysis.prediction.request import PredictionRequest
from gpuexplore.analysis.utilization.utilization import shape_label
from gpuexplore.cli import EXIT_FAILED, EXIT_OK
from gpuexplore.cli.experiment_arguments import add_operation, operation_of
from gpuexplore.cli.output import print_json, say_readings
from gpuexplore.cli.predict_command import add_calls, measured_here, prediction_json
from gpuexplore.core.dtypes import FORMATS
from gpuexplore.core.units import format_bytes_per_s, format_flop_per_s, format_seconds
from gpuexplore.features.fact_check.analysis.possible import Possibility, is_possible
from gpuexplore.hardware import discover, ensure_ceiling, readings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `check`; values stay text."""
    add = parser.add_argument
    add_operation(parser)
    add("--gpu", required=True, metavar="NAME", help="a driver name or key of `specs`, or cpu, cuda:0 of this machine")
    add("--time", metavar="TIME", help="claimed time of a call: 90us, 1.25ms, 2s")
    add("--rate", metavar="RATE", help="claimed rate, instead of a time: 1.2PFLOP/s, 900TFLOPS, 3TB/s")
    add("--size", default="", metavar="N", help="length of every axis")
    add("--shape", default="", metavar="m=..|PRESET", help="exact axes, or a preset, instead of a size")
    add("--dtype", default="fp32", metavar="NAME", help=f"one of {', '.join(FORMATS)} (default: %(default)s)")
    add("--impl", default="", metavar="NAME", help="implementation to compare with (default: the vendor's library)")
    add_calls(parser)
    add("--json", action="store_true", help="print JSON")


def execute(arguments: argparse.Namespace) -> int:
    """Print the verdict with its reason; fail where the time is above a limit of the device."""
    asked = PredictionRequest(
        operation=operation_of(arguments),
        gpus=arguments.gpu,
        sizes=arguments.size,
        shapes=arguments.shape,
        dtypes=arguments.dtype,
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
        print(f"  {_rate_words(found)}; {found.reason}")
    return EXIT_OK if found else EXIT_FAILED


def _rate_words(found: Possibility) -> str:
    """Return the rates in the stated time, in words."""
    moved = format_bytes_per_s(found.bytes_per_s)
    return f"{format_flop_per_s(found.flop_per_s)} and {moved}" if found.flop_per_s else moved
