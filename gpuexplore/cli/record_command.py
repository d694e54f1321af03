"""`gpuexplore record`: measure in this process and write each result at once, with where it comes from.

Runs on a bare GPU machine: numpy, numba and torch are enough. The file is JSON Lines: a header with the
provenance, then one result a line, so that an interrupted recording keeps what it has.
"""

import argparse
import getpass
import json
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import gpuexplore
from gpuexplore.cli.experiment_arguments import add_experiment_arguments, request_from
from gpuexplore.cli.output import ProgressLine, exit_code, refuse_file
from gpuexplore.devices import discover, ensure_ceiling
from gpuexplore.measure.environment import git_commit, utc_now
from gpuexplore.measure.sweep import sweep
from gpuexplore.model import SCHEMA_VERSION, Case, Device, Experiment, Result
from gpuexplore.operations import OPERATIONS
from gpuexplore.request import resolve
from gpuexplore.serialization import encode


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `record`."""
    parser.add_argument("operations", nargs="*", metavar="OPERATION", help="default: every operation")
    add_experiment_arguments(parser)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.jsonl", help="the file to write")
    parser.add_argument("--by", default="", metavar="NAME", help="who measures (default: the login name)")


def execute(arguments: argparse.Namespace) -> int:
    """Record the experiments and return the exit code."""
    refuse_file(arguments.out, [".jsonl"])
    devices = discover()
    ids = [device.id for device in devices]
    experiments = [resolve(request_from(arguments, name), ids) for name in arguments.operations or OPERATIONS]
    wanted = {device for one in experiments for device in one.devices}
    devices = tuple(ensure_ceiling(device, experiments[0].options.threads) for device in devices if device.id in wanted)
    with arguments.out.open("w", encoding="utf8") as file:
        _write(file, _header(devices, arguments.by or getpass.getuser()))
        return exit_code(_record(experiments, devices, file))


def _header(devices: Sequence[Device], recorded_by: str) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "recorded_utc": utc_now(),
        "recorded_by": recorded_by,
        "method": f"gpuexplore {gpuexplore.__version__} record",
        "commit": git_commit(),
        "devices": encode(devices),
    }


def _record(experiments: Sequence[Experiment], devices: Sequence[Device], file: IO[str]) -> list[Result]:
    results: list[Result] = []
    progress = ProgressLine(sum(len(one.cases()) for one in experiments))

    def take(event: Case | Result) -> None:
        progress.show(event)
        if isinstance(event, Result):
            results.append(event)
            _write(file, encode(event))

    for experiment in experiments:
        sweep(experiment, devices, report=take)
    return results


def _write(file: IO[str], value: Any) -> None:
    file.write(json.dumps(value, allow_nan=False) + "\n")
    file.flush()
