"""How many steps of the lessons get a verdict here: each is done by `gpuexplore lesson run`, and every check looked at.

    python -m benchmarks.lessons [--busy] [--lesson NAME ...]

A step has no verdict where a check of it was not measured, an interval does not decide, or two intervals overlap. What
needs a GPU has recorded or predicted figures on a machine without one, and is judged by these.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

from benchmarks.bias import busy_loop
from gpuexplore.features.lessons.lesson import catalog
from gpuexplore.features.lessons.lesson.blocks import CANNOT_TELL
from gpuexplore.features.lessons.lesson.outcome import GuessOutcome

AT_MOST = 0.1  # of the steps


def main() -> int:
    """Print each step without a verdict, with its reason, and how many have one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--busy", action="store_true", help="beside a process that computes all the time")
    parser.add_argument("--lesson", nargs="*", help="these alone")
    arguments = parser.parse_args()
    steps = untold = 0
    with busy_loop() if arguments.busy else nullcontext():
        for name in arguments.lesson or catalog().lessons:
            done = _steps(name)
            reasons = {step["step"]: why for step in done if (why := " | ".join(_reasons(step)))}
            steps, untold = steps + len(done), untold + len(reasons)
            seconds = sum(step["seconds"] for step in done)
            print(f"{name}: {len(done) - len(reasons)} of {len(done)} conclusive, {seconds:.0f} s", flush=True)
            for letter, why in reasons.items():
                print(f"   {letter}: {why}", flush=True)
    print(f"{steps - untold} of {steps} steps conclusive: {1 - untold / steps:.1%}")
    return 0 if untold <= AT_MOST * steps else 1


def _steps(name: str) -> list[dict[str, Any]]:
    """Return the steps of a lesson that have something to be judged."""
    command = [sys.executable, "-m", "gpuexplore", "lesson", "run", name, "--json"]
    environment = {key: value for key, value in os.environ.items() if key != "OPENBLAS_CORETYPE"}
    done = subprocess.run(command, check=False, env=environment, stdout=subprocess.PIPE, text=True)
    return [step for step in json.loads(done.stdout)["steps"] if step["checks"]]


def _reasons(step: dict[str, Any]) -> Iterator[str]:
    for check in step["checks"]:
        if check["why"]:
            yield check["why"]
        elif check["answer"] == CANNOT_TELL:
            yield "the intervals overlap"
        elif check["outcome"] == GuessOutcome.NOT_MEASURED:
            yield "not measured"


if __name__ == "__main__":
    sys.exit(main())
