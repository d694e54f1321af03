"""`gpuexplore factcheck`: claims of the notebooks, checked against their own numbers."""

import argparse
import sys
from collections.abc import Sequence
from contextlib import closing

from gpuexplore.analysis.run.estimate import check_limits
from gpuexplore.cli.output import EXIT_OK, declare, exit_code, print_columns, print_json
from gpuexplore.cli.predict_command import measured_here
from gpuexplore.cli.run_command import measure, save
from gpuexplore.core.model import Device, Result
from gpuexplore.features.fact_check.analysis import Claim, claims, claims_of
from gpuexplore.features.fact_check.analysis.judge import judge
from gpuexplore.features.fact_check.analysis.measured import experiments
from gpuexplore.hardware import discover
from gpuexplore.jobs.engines.local import LocalEngine


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `factcheck`."""
    declare(
        parser,
        {
            "row ROW": {"nargs": "?", "help": "row of the notebooks, like B5 (default: every claim)"},
            "--measure": "measure what would confirm it, on the devices of this machine",
            "--json": "print JSON",
        },
    )


def execute(arguments: argparse.Namespace) -> int:
    """Print each claim with its verdict, and the evidence of one row; with `--measure` after measuring."""
    asked = claims_of(arguments.row) if arguments.row else claims()
    devices = discover()
    results = _measured(asked, devices) if arguments.measure else ()
    known = measured_here(devices)
    judged = [judge(claim, known) for claim in asked]
    if arguments.json:
        print_json(
            {
                "claims": [
                    {
                        "id": judgement.claim.id,
                        "claim": judgement.claim.claim,
                        "verdict": judgement.verdict,
                        "findings": list(judgement.findings),
                        "evidence": list(judgement.evidence),
                    }
                    for judgement in judged
                ]
            }
        )
    elif arguments.row:
        for judgement in judged:
            print(f"{judgement.claim.id}  {judgement.claim.claim}\n  {judgement.verdict}")
            for sentence in judgement.evidence:
                print(f"  - {sentence}")
    else:
        rows = ((judgement.claim.id, judgement.verdict, judgement.claim.claim) for judgement in judged)
        print_columns([("row", "verdict", "claim"), *rows])
    return exit_code(results) if results else EXIT_OK


def _measured(asked: Sequence[Claim], devices: Sequence[Device]) -> tuple[Result, ...]:
    """Measure what would confirm the claims, and keep it as every run is kept."""
    wanted = tuple(dict.fromkeys(experiment for claim in asked for experiment in experiments(claim, devices)))
    if not wanted:
        print("No device of this machine can measure this.", file=sys.stderr)
    results: list[Result] = []
    for experiment in wanted:
        check_limits(experiment, devices)
        with closing(LocalEngine(devices)) as engine:
            measured = measure(experiment, devices, engine)
        save(experiment, measured)
        results += measured
    return tuple(results)
