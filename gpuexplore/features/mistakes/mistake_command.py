"""`gpuexplore mistake`: a measuring mistake made on purpose, next to the right way."""

import argparse
from typing import Any

from gpuexplore.analysis.verdict import Estimate, Verdict, Words, compare
from gpuexplore.cli.activity_run import perform
from gpuexplore.cli.output import EXIT_OK, declare, print_columns, print_json
from gpuexplore.core import decode, encode, format_interval, format_multiple
from gpuexplore.features.mistakes.catalog import (
    MISTAKES,
    UNITS,
    Mistake,
    MistakeObservation,
    activity_of,
    mistake_named,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `mistake`."""
    declare(
        parser,
        {
            "name NAME": {"nargs": "?", "help": "the mistake to reproduce, like no-synchronise; without it, a list"},
            "--device NAME": {"default": "cpu", "help": "device to measure on: cpu or cuda:0 (default: cpu)"},
            "--json": "print JSON",
        },
    )


def execute(arguments: argparse.Namespace) -> int:
    """List the mistakes, or make one and print the wrong value and the right one."""
    if arguments.name is None:
        _list(MISTAKES.values(), as_json=arguments.json)
        return EXIT_OK
    mistake = mistake_named(arguments.name)
    observation = decode(MistakeObservation, perform(activity_of(mistake.name, arguments.device))[-1])
    if arguments.json:
        found = encode(observation)
        verdict = difference(observation)
        print_json(
            _description(mistake)
            | {
                **{name: found[name] for name in ("what", "wrong", "right", "factor", "rounds", "note", "source")},
                "within_noise": verdict.relation is None if verdict else None,
                "verdict": verdict and verdict.statement,
                "detected": observation.detection.found,
                "evidence": observation.detection.evidence,
                "origin": observation.origin,
                "environment": found["environment"],
            }
        )
    else:
        _print(mistake, observation)
    return EXIT_OK


def _list(mistakes: Any, *, as_json: bool) -> None:
    if as_json:
        print_json({"mistakes": [_description(mistake) for mistake in mistakes]})
        return
    rows = [(mistake.name, " ".join(mistake.rows), str(mistake.gives_away or "nothing")) for mistake in mistakes]
    print_columns([("mistake", "rows", "given away by"), *rows])


def _description(mistake: Mistake) -> dict[str, Any]:
    """Return what is written of a mistake; the ways are apart from the values of an observation."""
    texts = {name: text for name, text in encode(mistake).items() if name not in ("file", "instead")}
    ways = {"wrong_way": texts.pop("wrong"), "right_way": texts.pop("right")}
    return texts | ways | {"unit": UNITS[mistake.quantity]}


def _print(mistake: Mistake, observation: MistakeObservation) -> None:
    print(f"{mistake.title}\n{mistake.why}\n\n{observation.what} ({observation.origin})")
    readings = (("wrong", mistake.wrong, observation.wrong), ("right", mistake.right, observation.right))
    rows = [
        (name, observation.words(reading), format_interval(reading.ci95, observation.format), way)
        for name, way, reading in readings
    ]
    print_columns([("", mistake.quantity, "95 % interval", "how"), *rows])
    if observation.factor:
        verdict = difference(observation)
        shown = verdict.statement if verdict else f"{format_multiple(observation.factor.ratio)} times"
        print(f"\nwrong value over right value: {shown}")
    words = {True: "given away", False: "not given away", None: "undecided"}
    found = words[observation.detection.found] if mistake.gives_away else "cannot be detected"
    print(f"{found}: {observation.detection.evidence}")
    for text in (observation.note, observation.source):
        if text:
            print(text)


def difference(observation: MistakeObservation) -> Verdict | None:
    """Return whether the wrong value is too small or too large; None where their factor has no interval."""
    factor = observation.factor
    if factor is None or factor.ci95 is None:
        return None
    low, high = factor.ci95
    ends = min(low, factor.ratio), max(high, factor.ratio)
    words = Words(below="too small", above="too large", question="whether it differs on this machine")
    return compare(Estimate(factor.ratio, *ends, "times", f"{observation.rounds} interleaved rounds"), 1.0, words=words)
