"""`gpuexplore record`: measure in this process and write each result at once, with where it comes from.

Runs on a bare GPU machine: numpy, numba and torch are enough. The file is JSON Lines: a header with the
provenance, then one result a line, so that an interrupted recording keeps what it has. `--check` judges such a file.
"""

import argparse
import json
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import gpuexplore
from gpuexplore.analysis.run.estimate import check_threads
from gpuexplore.cli.device_locking import locked
from gpuexplore.cli.experiment_arguments import add_experiment_arguments, request_from
from gpuexplore.cli.output import EXIT_FAILED, EXIT_OK, ProgressLine, check_writable, declare, exit_code, say
from gpuexplore.core import Case, Device, Experiment, InvalidInput, Result, Status, encode, require
from gpuexplore.hardware import discover, ensure_ceiling
from gpuexplore.measure.conditions.environment import describe_environment, git_commit, utc_now
from gpuexplore.measure.runner import sweep
from gpuexplore.operations import OPERATIONS, operation_named
from gpuexplore.recorded import Provenance, Recording, check_commit, header, missing_provenance, validate
from gpuexplore.request import Request, resolve, to_query


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `record`."""
    parser.add_argument("operations", nargs="*", metavar="OPERATION", help="default: every operation")
    add_experiment_arguments(parser)
    declare(
        parser,
        {
            "--by NAME": "name of the person who measures and can answer questions",
            "--commit HASH": "commit of this code, where git cannot report it",
        },
        default="",
    )
    declare(
        parser.add_mutually_exclusive_group(required=True),
        {
            "--out FILE.jsonl": {"type": Path, "help": "the file to write"},
            "--check FILE.jsonl": {"type": Path, "help": "validate this file instead of measuring"},
        },
    )


def execute(arguments: argparse.Namespace) -> int:
    """Record the experiments, or check a file, and return the exit code."""
    if arguments.check:
        return _check(arguments.check)
    check_writable(arguments.out, [".jsonl"])
    if arguments.out.exists() and arguments.out.stat().st_size:
        raise InvalidInput.of("--out", arguments.out.name, "a new file: recordings are not overwritten")
    devices = discover()
    ids = [device.id for device in devices]
    names = tuple(dict.fromkeys(arguments.operations or OPERATIONS))
    experiments = [resolve(request_from(arguments, name, devices), ids) for name in names]
    check_threads(experiments[0], devices)
    wanted = {device for experiment in experiments for device in experiment.devices}
    used = [device for device in devices if device.id in wanted]
    _refuse_without_provenance(_provenance(arguments, experiments, used), _given_commit(arguments))
    devices = tuple(ensure_ceiling(device, experiments[0].options.threads) for device in used)
    with arguments.out.open("w", encoding="utf8") as file:
        _write(file, header(_provenance(arguments, experiments, devices), experiments))
        return exit_code(_record(experiments, devices, file))


def _provenance(
    arguments: argparse.Namespace, experiments: Sequence[Experiment], devices: Sequence[Device]
) -> Provenance:
    """Return where the results will come from; an empty text is unknown."""
    names = {
        operation_named(experiment.operation).implementation_named(name).backend
        for experiment in experiments
        for name in experiment.implementations
    }
    found = [describe_environment(device, names, None) for device in devices]
    return Provenance(
        recorded_utc=utc_now(),
        recorded_by=arguments.by.strip(),
        method=f"gpuexplore {gpuexplore.__version__} record",
        commit=git_commit() or _given_commit(arguments),
        command=_command_of(arguments, experiments[0].dtypes),
        devices=tuple(devices),
        libraries={name: version for environment in found for name, version in environment.libraries.items()},
        python=found[0].python,
        platform=found[0].platform,
    )


def _given_commit(arguments: argparse.Namespace) -> str:
    return arguments.commit.strip().lower()


def _refuse_without_provenance(provenance: Provenance, given_commit: str) -> None:
    """Raise before anything is measured when the file would be refused afterwards."""
    require(provenance.recorded_by, "--by", "", "the name of the person who measures and can answer questions")
    require(provenance.commit, "--commit", "", "the commit of this code, which git cannot report here")
    for commit in filter(None, (given_commit, provenance.commit)):
        check_commit(commit)
    require(
        provenance.commit.startswith(given_commit[: len(provenance.commit)]),
        "--commit",
        given_commit,
        f"{provenance.commit}, the commit that git reports",
    )
    if missing := missing_provenance(encode(provenance)):
        raise InvalidInput(f"unknown on this machine: {', '.join(missing)}")


def _command_of(arguments: argparse.Namespace, dtypes: Sequence[str]) -> str:
    """Return the command that repeats the recording, without the folder it was written to."""
    words = ["gpuexplore", "record", *arguments.operations]
    for name, text in to_query(replace(request_from(arguments, Request().operation), dtypes=",".join(dtypes))).items():
        words += [f"--{name}", text]
    return shlex.join([*words, "--by", arguments.by, "--out", arguments.out.name])


def _record(experiments: Sequence[Experiment], devices: Sequence[Device], file: IO[str]) -> list[Result]:
    results: list[Result] = []
    progress = ProgressLine(sum(len(planned.cases()) for planned in experiments))

    def take(event: Case | Result) -> None:
        progress.show(event)
        if isinstance(event, Result):
            results.append(event)
            if event.status is not Status.CANCELLED:  # or the file would look as if it had all
                _write(file, encode(event))

    for experiment in experiments:
        sweep(experiment, devices, report=take, lock=locked)
    if left := [result for result in results if result.status is Status.CANCELLED]:
        say(f"gpuexplore: {len(left)} cases are left out, the first of them: {left[0].reason}")
    return results


def _write(file: IO[str], value: Any) -> None:
    file.write(json.dumps(value, allow_nan=False) + "\n")
    file.flush()


def _check(path: Path) -> int:
    try:
        recording = validate(path)
    except InvalidInput as error:
        print(f"gpuexplore: {error}", file=sys.stderr)
        return EXIT_FAILED
    print("\n".join(_summary(recording)))
    if missing := recording.missing:
        first = missing[0]
        words = f"{first.operation} {first.shape} {first.dtype} {first.implementation} on {first.device}"
        say(f"gpuexplore: {path.name}: {len(missing)} cases of its header have no result, {words} the first of them")
        return EXIT_FAILED
    return EXIT_OK


def _summary(recording: Recording) -> list[str]:
    provenance = recording.provenance
    statuses = Counter(result.status.value for result in recording.results)
    flags = Counter(str(flag.name) for result in recording.results for flag in result.flags)
    made = f"recorded {provenance.recorded_utc} by {provenance.recorded_by}"
    return [
        f"{recording.name}: {made}, {provenance.method}, commit {provenance.commit}",
        *(f"{device.id}: {device.title}, driver {device.driver or 'none'}" for device in provenance.devices),
        ", ".join(f"{name} {version}" for name, version in provenance.libraries.items()),
        *(
            f"{run.experiment.operation}: {run.progress.done} of {run.progress.total} cases"
            for run in recording.as_runs()
        ),
        f"status: {_counted(statuses)}",
        f"flags: {_counted(flags)}",
    ]


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.most_common()) or "none"
