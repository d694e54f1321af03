"""From a click on Run to the first point, the whole chart and the settled run: 36 points of matrix products.

    python -m benchmarks.first_visit [--turns N] [--busy] [--at-once | --command]

The app is served from an empty home, its measuring process warm, as a newcomer finds it. Each turn submits a run as
the page does, four sizes in fp32, bf16 and fp16 by every implementation of the form, and follows it in the database
until it has ended. The first turn has the form's own sizes, the others random ones of the same range, so that nothing
is measured twice. Beside each turn a process of its own times the same calls by `torch.utils.benchmark`'s
`blocked_autorange`, which checks nothing; its time is without its start.

With `--at-once` the first turn comes as soon as the server answers, while libraries are loaded and kernels compiled.
With `--command` the same by `gpuexplore run`, start included, beside the same process with its start. With `--busy`
another process of the same priority computes meanwhile. It asserts nothing.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.bias import busy_loop
from gpuexplore.core.model import Case, Experiment, RunState
from gpuexplore.core.serialization import decode, encode
from gpuexplore.operations import operation_named
from gpuexplore.store import Store, open_store
from scripts.app_server import database_of, served

DTYPES = ("fp32", "bf16", "fp16")
AIMS_S: Mapping[str, float] = {"first point": 0.5, "whole chart": 3.0, "settled": 10.0}
PEER_S = 0.2  # blocked_autorange's own default
LOOK_S = 0.02  # until the first point; later looks would take a part of a core from what they look at
LATER_LOOK_S = 0.1
LOST_AFTER_S = 120.0
ENDED = (RunState.DONE, RunState.CANCELLED, RunState.FAILED)
SEED = 1


@dataclass(frozen=True, slots=True)
class Turn:
    """Seconds since the click, and those of `blocked_autorange` for the same calls.

    Attributes:
        sizes: of the products.
        peer_s: without its start, or with it where those of the run have theirs.
    """

    sizes: tuple[int, ...]
    seconds: Mapping[str, float]
    peer_s: float

    def __str__(self) -> str:
        said = "".join(f"{self.seconds[name]:>14.2f}" if name in self.seconds else f"{'-':>14}" for name in AIMS_S)
        ratio = self.seconds["settled"] / self.peer_s
        return f"{','.join(map(str, self.sizes)):20}{said}{self.peer_s:>21.2f}{ratio:>8.2f}"


def main() -> None:
    """Measure and print a line for each turn, and the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--busy", action="store_true", help="beside a busy loop")
    parser.add_argument("--at-once", action="store_true", help="do not wait until the measuring process is warm")
    parser.add_argument("--command", action="store_true", help="by the command, start included")
    parser.add_argument("--peer", metavar="FILE", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peer:
        print(json.dumps(_peer_seconds([decode(Case, each) for each in json.loads(arguments.peer.read_text())])))
        return
    os.environ.pop("OPENBLAS_CORETYPE", None)
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gpuexplore-", ignore_cleanup_errors=True)))
        stack.enter_context(nullcontext() if arguments.command else served(home, warm=not arguments.at_once))
        stack.enter_context(busy_loop() if arguments.busy else nullcontext())
        print(
            f"{'sizes':20}"
            + "".join(f"{name + ', s':>14}" for name in AIMS_S)
            + f"{'blocked_autorange, s':>21}{'ratio':>8}"
        )
        turns = []
        for sizes in _sizes(arguments.turns):
            turns.append(_by_command(sizes, home) if arguments.command else _by_app(sizes, home))
            print(turns[-1], flush=True)
    _print_medians(turns)


def _sizes(turns: int) -> Iterator[tuple[int, ...]]:
    usual, draw = operation_named("matmul").default_sizes, random.Random(SEED)
    for turn in range(turns):
        yield tuple(size if not turn else round(size * draw.uniform(0.75, 1.0)) for size in usual)


def _experiment(sizes: Sequence[int]) -> Experiment:
    operation = operation_named("matmul")
    shapes = tuple(operation.shape_of_size(size) for size in sizes)
    return Experiment(
        "matmul", shapes, DTYPES, tuple(each.name for each in operation.usual if each.name != "numba-cuda")
    )


def _by_app(sizes: tuple[int, ...], home: Path) -> Turn:
    with open_store(database_of(home)) as store:
        experiment = _experiment(sizes)
        seconds = _followed(store, store.submit(experiment, "a newcomer"), len(experiment.cases()))
    return Turn(sizes, seconds, _peer(experiment)["calls"])


def _followed(store: Store, run_id: str, cases: int) -> Mapping[str, float]:
    """Return when the first point, all points and the end of a run were in the database."""
    seconds: dict[str, float] = {}
    began_s = time.monotonic()
    while "settled" not in seconds:
        time.sleep(LATER_LOOK_S if seconds else LOOK_S)
        passed_s = time.monotonic() - began_s
        run = store.load_summary(run_id)
        found = run.progress.done + run.progress.provisional if "whole chart" not in seconds else cases
        if found:
            seconds.setdefault("first point", passed_s)
        if found == cases:
            seconds.setdefault("whole chart", passed_s)
        if run.state in ENDED:
            seconds["settled"] = passed_s
        if passed_s > LOST_AFTER_S:
            raise TimeoutError(f"the run has not ended within {LOST_AFTER_S:g} s")
    return seconds


def _by_command(sizes: tuple[int, ...], home: Path) -> Turn:
    experiment = _experiment(sizes)
    words = (
        "--size",
        ",".join(map(str, sizes)),
        "--dtype",
        ",".join(DTYPES),
        "--impl",
        ",".join(experiment.implementations),
    )
    seconds = _seconds_of(("-m", "gpuexplore", "run", "matmul", *words), {"GPUEXPLORE_HOME": str(home)})
    return Turn(sizes, {"settled": seconds}, _peer(experiment)["process"])


def _seconds_of(words: Sequence[str], variables: Mapping[str, str]) -> float:
    began_s = time.monotonic()
    command = (sys.executable, *words)
    subprocess.run(
        command, env={**os.environ, **variables}, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    return time.monotonic() - began_s


def _peer(experiment: Experiment) -> Mapping[str, float]:
    """Return the seconds that `blocked_autorange` takes for the calls of a run, and those of its whole process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cases.json"
        path.write_text(json.dumps([encode(case) for case in experiment.cases()]))
        began_s = time.monotonic()
        command = (sys.executable, "-m", "benchmarks.first_visit", "--peer", str(path))
        found = subprocess.run(command, capture_output=True, text=True, check=True)
        return {"process": time.monotonic() - began_s, "calls": float(found.stdout.splitlines()[-1])}


def _peer_seconds(cases: Sequence[Case]) -> float:
    """Return how long `blocked_autorange` takes for calls that were made once, one library after the other."""
    from benchmarks.measurement import make_runs, pin_environment

    pin_environment()
    from torch.utils.benchmark import Timer

    from gpuexplore.hardware import discover

    device, spent_s = discover()[0], 0.0
    for case in sorted(cases, key=lambda case: case.implementation):
        run = make_runs([case], device)[case]
        run()
        began_s = time.monotonic()
        Timer("run()", globals={"run": run}, num_threads=device.cores or 1).blocked_autorange(min_run_time=PEER_S)
        spent_s += time.monotonic() - began_s
    return spent_s


def _print_medians(turns: Sequence[Turn]) -> None:
    """Print the median of each figure, the worst one, and the aim."""
    print()
    for name, aim_s in AIMS_S.items():
        if found := [turn.seconds[name] for turn in turns if name in turn.seconds]:
            print(f"{name:12} {median(found):6.2f} s (at most {max(found):.2f}), aim {aim_s:g} s")
    ratios = [turn.seconds["settled"] / turn.peer_s for turn in turns]
    print(f"{'of the peer':12} {median(ratios):6.2f}   (at most {max(ratios):.2f}), aim 1")


if __name__ == "__main__":
    main()
