"""The arguments that describe an experiment, shared by `run` and `record`; judged by `gpuexplore.request`."""

import argparse
from collections.abc import Iterable

from gpuexplore.cli.output import declare
from gpuexplore.core import ALIGNMENTS, CACHE_MODES, DATA_MODES, DEFAULT_BUDGET_S, LAYOUTS, Device, InvalidInput
from gpuexplore.core.dtypes import DTYPES
from gpuexplore.hardware.discovery import first_dtypes
from gpuexplore.operations import OPERATIONS, additions
from gpuexplore.request import Request, listed


def add_operation(parser: argparse.ArgumentParser) -> None:
    """Declare the operation: the first positional argument, or the option `--operation`."""
    declare(
        parser,
        {
            "operation OPERATION": {"nargs": "?", "help": ", ".join(OPERATIONS)},
            "--operation NAME": {"dest": "operation_option", "help": "the operation, as an option"},
        },
    )


def operation_of(arguments: argparse.Namespace) -> str:
    """Return the name of the operation that was asked for.

    Raises:
        InvalidInput: none was named, or two were.
    """
    named = [each for each in (arguments.operation, arguments.operation_option) if each is not None]
    if len(named) != 1:
        raise InvalidInput.of("operation", " and ".join(named), OPERATIONS)
    return str(named[0])


def add_experiment_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare sizes, dtypes, implementations, devices and conditions; values stay text."""
    declare(
        parser,
        {
            "--size LIST|RANGE": "sizes like 512,1024 or 256:8192:x2 or 100:500:+100",
            "--shape m=..|PRESET": {
                "action": "append",
                "default": [],
                "help": "one shape, or a preset; may be repeated",
            },
            "--dtype LIST": f"{', '.join(DTYPES)} (default: three, native ones first)",
        },
    )
    accepted = ["names that `list` prints (default: all that run here)", *(module.ACCEPTED for module in additions())]
    declare(
        parser,
        {
            "--impl LIST": {"default": None, "help": ", ".join(accepted)},
            "--device LIST": {"default": None, "help": "cpu, cuda:0, .. (default: every device)"},
            "--cache": {"metavar": "|".join(CACHE_MODES), "help": "default: cold on a GPU, warm on a CPU"},
            "--data": {
                "default": "normal",
                "metavar": "|".join(DATA_MODES),
                "help": "values of the inputs (default: %(default)s)",
            },
            "--threads N": "CPU threads of every library (default and maximum: one per physical core)",
            "--budget SECONDS": {
                "default": f"{DEFAULT_BUDGET_S:g}",
                "help": "sampling per case (default: %(default)s)",
            },
            "--block X[,Y]": "threads per block of our CUDA kernels (default: each kernel's own)",
            "--layout": {
                "default": "NN",
                "metavar": "|".join(LAYOUTS),
                "help": "memory layout of the matrices of a matmul: N row-major, T column-major (default: %(default)s)",
            },
            "--align": {
                "default": "library",
                "metavar": "|".join(ALIGNMENTS),
                "help": "alignment of a CPU's arrays: the library's own, or 2 MiB boundaries (default: %(default)s)",
            },
            "--repeat N": "measure in N fresh processes: the interval then covers differences between them",
        },
        default="",
    )


def request_from(arguments: argparse.Namespace, operation: str, devices: Iterable[Device] = ()) -> Request:
    """Return the request these arguments stand for on a machine with `devices`."""
    return Request(
        operation=operation,
        sizes=_listed("sizes", arguments.size),
        shapes=_listed("shapes", ";".join(arguments.shape) if arguments.shape else None),
        dtypes=first_dtypes(devices, arguments.device or "") if arguments.dtype is None else arguments.dtype,
        implementations=_named(_listed("implementations", arguments.impl)),
        devices=_listed("devices", arguments.device),
        cache=arguments.cache,
        data=arguments.data,
        threads=arguments.threads,
        budget=arguments.budget,
        block=arguments.block,
        layout=arguments.layout,
        align=arguments.align,
        repeat=arguments.repeat,
    )


def _named(text: str) -> str:
    """Return implementations by name; an implementation that a feature reads, such as a file, gets a name."""
    words = [*map(str.strip, text.split(","))]
    for module in additions():
        words = module.named(words)
    return ",".join(words)


def _listed(name: str, text: str | None) -> str:
    return "" if text is None else listed(name, text)
