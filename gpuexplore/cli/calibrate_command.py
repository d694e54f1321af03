"""`gpuexplore calibrate`: a minute of measuring, what it changes in predictions, and how a device is unlike its kind.

Its runs are kept like any other, so that predictions use them.
"""

import argparse

from gpuexplore.analysis.prediction.request import (
    TITLE,
    CalibrationRow,
    columns_of,
    compared,
    sweep_of,
    unlike_its_kind,
)
from gpuexplore.cli.output import declare, exit_code, print_columns, print_json, say
from gpuexplore.cli.predict_command import measured_here
from gpuexplore.cli.run_command import OWNER, measure
from gpuexplore.core import Result, encode
from gpuexplore.hardware import GPU_KINDS, device_named, discover, ensure_ceiling
from gpuexplore.jobs.engines.local import LocalEngine


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `calibrate`."""
    declare(
        parser,
        {
            "--device ID": "cpu, cuda:0, .. (default: the first GPU, else the CPU)",
            "--json": "print JSON",
        },
        default="",
    )


def execute(arguments: argparse.Namespace) -> int:
    """Measure the sweep, keep it, and print what it changes."""
    from gpuexplore.store import Description, open_store

    here = [device for device in discover() if not device.is_simulated]
    first = next((device.id for device in here if device.kind in GPU_KINDS), here[0].id)
    device = ensure_ceiling(device_named(arguments.device or first, here))
    experiments = sweep_of(device)
    earlier = measured_here([device])[::-1]  # newest last
    engine = LocalEngine([device])
    results: list[Result] = []
    try:
        with open_store() as store:
            for experiment in experiments:
                found = measure(experiment, [device], engine)
                run_id = store.record(experiment, OWNER, results=found)
                store.describe(run_id, OWNER, Description(title=TITLE))
                results += found
    finally:
        engine.close()
    rows = compared(device, results, earlier)
    unlike = unlike_its_kind(device, results)
    if arguments.json:
        print_json(
            {"device": encode(device), "cases": [_row_json(row) for row in rows], "unlike_its_kind": list(unlike)}
        )
    else:
        table = [columns_of(row) for row in rows]
        print(device.title)
        print_columns([tuple(table[0]), *(tuple(row.values()) for row in table)], one_unit=False)
        print(*unlike, sep="\n", end="\n" if unlike else "")
        say("gpuexplore: predictions of this device use these results from now on")
    return exit_code(results)


def _row_json(row: CalibrationRow) -> dict[str, object]:
    """Return one case as `gpuexplore calibrate --json` prints it."""
    case = row.now.case
    ends = {"before": row.before, "now": row.now}
    return {
        "operation": case.operation,
        "shape": dict(case.shape.axes),
        "dtype": case.dtype,
        "measured_s": row.measured_s,
        **{name: {"time_s": said.time_s, "low_s": said.low_s, "high_s": said.high_s} for name, said in ends.items()},
    }
