"""`gpuexplore factcheck`: what the notebooks claim, and what follows from their own numbers."""

import argparse
from typing import Any

from gpuexplore.analysis.fact_check.claim import claims, claims_of
from gpuexplore.analysis.fact_check.judge import Judgement, judge
from gpuexplore.cli import EXIT_OK
from gpuexplore.cli.output import print_columns, print_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `factcheck`."""
    parser.add_argument("row", nargs="?", metavar="ROW", help="of the notebooks, like B5; without it, every claim")
    parser.add_argument("--json", action="store_true", help="print JSON")


def execute(arguments: argparse.Namespace) -> int:
    """Print each claim with its verdict, and the evidence of one row."""
    judged = [judge(claim) for claim in (claims_of(arguments.row) if arguments.row else claims())]
    if arguments.json:
        print_json({"claims": [_json(judgement) for judgement in judged]})
    elif arguments.row:
        for judgement in judged:
            _print(judgement)
    else:
        rows = ((judgement.claim.id, judgement.verdict, judgement.claim.claim) for judgement in judged)
        print_columns([("row", "verdict", "claim"), *rows])
    return EXIT_OK


def _json(judgement: Judgement) -> dict[str, Any]:
    return {
        "id": judgement.claim.id,
        "claim": judgement.claim.claim,
        "verdict": judgement.verdict,
        "findings": [finding.name for finding in judgement.findings],
        "evidence": list(judgement.evidence),
    }


def _print(judgement: Judgement) -> None:
    print(f"{judgement.claim.id}  {judgement.claim.claim}\n  {judgement.verdict}")
    for sentence in judgement.evidence:
        print(f"  - {sentence}")
