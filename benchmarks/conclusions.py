"""Whether conclusions hold: sixty cases in eight fresh processes, from an empty home, without `repeatability`.

Products, vectors, rows of softmax and layer norm and training steps are measured in fp32 as `gpuexplore run` would,
each process a fresh worker. What is concluded: the kind of limit of each case, the fastest implementation of each
group, and which of each pair of a group is faster, or that neither is by more than a quarter. Printed: how many of them
a process tells, how many of those told agree with most of the others, and how often the 95 % interval of one process
holds the median of all, for times and for ratios; that of the first process alone, which knows the prior only, beside
it. Then how wide intervals are against what they stand for, 1.96 standard deviations of the medians of all processes,
and what `compare` says of each process and the next, which are equal: how often it finds a change, and how large one
must be to be found.

With `--peer` a fresh process beside each one times the same calls by `torch.utils.benchmark`'s `blocked_autorange`, and
the spreads of medians and of ratios from process to process are printed for both.

    python -m benchmarks.conclusions --out FOLDER [--processes 8] [--budget 0.1] [--busy] [--peer] [--replay]

What a process found is a file in FOLDER, and its home is there too: run it again, and it goes on where it ended. With
`--replay` nothing is measured: what is there is judged with the spread that an empty home would know of it now.
"""

import argparse
import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import log
from pathlib import Path
from statistics import median, stdev
from tempfile import TemporaryDirectory

from benchmarks.bias import busy_loop
from gpuexplore.analysis.compare import Side, compare_runs
from gpuexplore.analysis.diagnosis import DISTURBANCES
from gpuexplore.analysis.diagnosis.limits import BOUND_FROM, _nearest
from gpuexplore.analysis.model import AnalyzedResult, Speedup
from gpuexplore.analysis.run.analyze import analyze
from gpuexplore.analysis.speedup import speedup
from gpuexplore.analysis.verdict import time_of
from gpuexplore.core.model import DEFAULT_BUDGET_S, Case, Options, Result
from gpuexplore.core.serialization import decode, encode
from gpuexplore.hardware import discover
from gpuexplore.jobs.engines.local import LocalEngine
from gpuexplore.measure.check.group import groups_of
from gpuexplore.measure.conditions.spread import NORMAL_95, note_results, with_spread
from gpuexplore.operations import operation_named

SIZES: Mapping[str, Sequence[int]] = {
    "matmul": (64, 128, 256, 512),
    "matvec": (1024,),
    "vector_add": (10_000, 100_000, 1_000_000, 5_000_000),
    "triad": (10_000, 100_000, 1_000_000),
    "softmax": (128, 512, 2048),
    "layer_norm": (128, 512, 2048),
    "mlp_step": (64, 256),
}
IMPLEMENTATIONS = ("numpy", "numba-cpu", "torch")
HOME_VARIABLE = "GPUEXPLORE_HOME"
EQUAL, ABOUT = "about equal", 1.25  # times as fast, at most
PEER_S = 0.2  # blocked_autorange's own default

Interval = tuple[float, float]
Process = Mapping[Case, Result]
Times = Mapping[Case, float]


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many intervals there were, in how many of them the median of all processes lies, and their half widths."""

    intervals: int
    held: int
    half_width: float

    def __str__(self) -> str:
        share = self.held / self.intervals if self.intervals else 0.0
        return f"{self.held} of {self.intervals} ({share:.1%}), half width {self.half_width:.1%} (median)"


def cases(budget_s: float) -> list[Case]:
    """Return the sixty cases, group by group."""
    options = Options(budget_s=budget_s)
    shapes = [(name, operation_named(name).shape_of_size(size)) for name, sizes in SIZES.items() for size in sizes]
    return [Case(name, shape, "fp32", each, "cpu", options) for name, shape in shapes for each in IMPLEMENTATIONS]


def main() -> None:
    """Measure what is not there yet, and print what follows from all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--budget", type=float, default=DEFAULT_BUDGET_S, help="seconds of a case (that of a run)")
    parser.add_argument("--busy", action="store_true", help="beside a busy loop")
    parser.add_argument("--peer", action="store_true", help="time the same calls by blocked_autorange too")
    parser.add_argument("--replay", action="store_true", help="measure nothing, learn again from what is there")
    parser.add_argument("--time-peer", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    chosen = cases(arguments.budget)
    if arguments.time_peer:
        print(json.dumps(_peer_times_s(chosen)))
        return
    if not arguments.replay:
        _measure_all(arguments, chosen)
    found = _processes(arguments.out, arguments.processes)
    report(_replayed(found) if arguments.replay else found)
    if arguments.peer:
        report_spreads(found, _peers(arguments.out, arguments.processes, chosen))


def _measure_all(arguments: argparse.Namespace, chosen: Sequence[Case]) -> None:
    os.environ[HOME_VARIABLE] = str(arguments.out / "home")
    (arguments.out / "home").mkdir(parents=True, exist_ok=True)
    with busy_loop() if arguments.busy else nullcontext():
        for number in range(arguments.processes):
            _kept(arguments.out / f"process-{number}.json", lambda: encode(_measured(chosen)))
            if arguments.peer:
                _kept(arguments.out / f"peer-{number}.json", lambda: _peer(arguments.budget))


def _replayed(processes: Sequence[Process]) -> list[Process]:
    """Return the results as a machine that learns from one process after the other would report them."""
    told: list[Process] = []
    with TemporaryDirectory() as home:
        os.environ[HOME_VARIABLE] = home
        for number, process in enumerate(processes):
            told.append({case: with_spread(result) for case, result in process.items()})
            environment = next(result.environment for result in process.values() if result.environment)
            note_results(environment.device, str(number), process.values())
    return told


def _kept(path: Path, measure: Callable[[], object]) -> None:
    if not path.exists():
        print(path.name, file=sys.stderr)
        draft = path.with_suffix(".tmp")
        draft.write_text(json.dumps(measure()))
        draft.replace(path)


def _measured(chosen: Sequence[Case]) -> list[Result]:
    """Return the results of a fresh worker."""
    found: dict[Case, Result] = {}

    def keep(event: Case | Result) -> None:
        if isinstance(event, Result):
            found[event.case] = event

    engine = LocalEngine(discover())
    try:
        for operation in SIZES:  # a run each, whose rounds take turns
            engine.measure([case for case in chosen if case.operation == operation], keep, lambda: False)
    finally:
        engine.close()
    return list(found.values())


def _peer(budget_s: float) -> list[float]:
    command = [sys.executable, "-m", "benchmarks.conclusions", "--out", ".", "--time-peer", f"--budget={budget_s}"]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    times_s: list[float] = json.loads(found.stdout.splitlines()[-1])
    return times_s


def _peer_times_s(chosen: Sequence[Case]) -> list[float]:
    """Return blocked_autorange's median of each case, of calls on the inputs and outputs that gpuexplore would make.

    One library after the other: idle threads of one would slow the calls of the next by up to 100 times.
    """
    from benchmarks.measurement import make_runs, pin_environment

    pin_environment()
    from torch.utils.benchmark import Timer

    device, times_s = discover()[0], dict[Case, float]()
    for case in sorted(chosen, key=lambda case: case.implementation):
        run = make_runs([case], device)[case]
        run()
        timer = Timer("run()", globals={"run": run}, num_threads=device.cores or 1)
        times_s[case] = timer.blocked_autorange(min_run_time=PEER_S).median
    return [times_s[case] for case in chosen]


def _processes(folder: Path, count: int) -> list[Process]:
    texts = ((folder / f"process-{number}.json").read_text() for number in range(count))
    found = [[decode(Result, result) for result in json.loads(text)] for text in texts]
    return [{result.case: result for result in results} for results in found]


def _peers(folder: Path, count: int, chosen: Sequence[Case]) -> list[Times]:
    texts = ((folder / f"peer-{number}.json").read_text() for number in range(count))
    return [dict(zip(chosen, json.loads(text), strict=True)) for text in texts]


def report(processes: Sequence[Process]) -> None:
    """Print what is concluded, what agrees, and what intervals hold."""
    told = [_conclusions(process) for process in processes]
    print(f"{len(processes)} processes of {len(processes[0])} cases")
    for kind in ("limit", "fastest", "pair"):
        of_kind = [{about: said for about, said in found.items() if about[0] == kind} for found in told]
        print(f"{kind:8} {_agreement(of_kind)}")
    print(f"{'all':8} {_agreement(told)}")
    print(f"times of all processes hold the median of {len(processes)}: {_coverage_of_times(processes, processes)}")
    print(f"times of the first alone:  {_coverage_of_times(processes[:1], processes)}")
    print(f"ratios of all processes:   {_coverage_of_ratios(processes, processes)}")
    print(f"ratios of the first alone: {_coverage_of_ratios(processes[:1], processes)}")
    print(f"half widths of times over 1.96 standard deviations of their medians: {_width_over_spread(processes)}")
    print(f"each process and the next, by `compare`: {_equal_runs(processes)}")


Conclusions = Mapping[tuple[object, ...], str | None]


def _conclusions(process: Process) -> Conclusions:
    """Return what one process concludes; None where it concludes nothing."""
    found: dict[tuple[object, ...], str | None] = {}
    by_operation: dict[str, list[Result]] = defaultdict(list)
    for result in process.values():
        by_operation[result.case.operation].append(result)
    for results in by_operation.values():
        for analyzed in analyze(results).results:
            first = next((each for each in analyzed.diagnoses if each.kind not in DISTURBANCES), None)
            found["limit", analyzed.case] = _limit(analyzed, first.kind) if first else None
    for group in groups_of(list(process)):
        pairs = {(a, b): _faster(process[a], process[b]) for a, b in combinations(group, 2)}
        found |= {("pair", *pair): said for pair, said in pairs.items()}
        found["fastest", group[0].group] = _fastest(group, pairs)
    return found


def _limit(analyzed: AnalyzedResult, kind: str) -> str:
    """Return a kind of limit; that a roof is the nearest contradicts none where its share may be above or below."""
    nearest = _nearest(analyzed)
    if kind != "below_limits" or nearest is None:
        return kind
    share = nearest[0]
    return EQUAL if share.low is not None and share.high is not None and share.low < BOUND_FROM <= share.high else kind


def _faster(this: Result, other: Result) -> str | None:
    """Return which of two is concluded to be faster, or that they are about equal."""
    found = _ratio(this, other)
    if found is None or found.ci95 is None:
        return None
    low, high = found.ci95
    if low > 1 or high < 1:
        return (this if low > 1 else other).case.implementation
    return EQUAL if low >= 1 / ABOUT and high <= ABOUT else None


def _fastest(group: Sequence[Case], pairs: Mapping[tuple[Case, Case], str | None]) -> str | None:
    """Return what beats all others, or that the others which it does not beat are about equal."""
    for case in group:
        said = [found for pair, found in pairs.items() if case in pair]
        if set(said) == {case.implementation}:
            return case.implementation
        if set(said) <= {case.implementation, EQUAL}:
            return EQUAL
    return None


def _agreement(found: Sequence[Conclusions]) -> str:
    """Return how many comparisons are conclusive, and how many of those agree with most processes.

    That two are about equal, or a result about at the threshold of a limit, contradicts neither of both.
    """
    count = sum(map(len, found))
    told = agreeing = 0
    for about in found[0]:
        said = Counter(each[about] for each in found if each.get(about))
        told += said.total()
        agreeing += said.pop(EQUAL, 0) + max(said.values(), default=0)
    share = agreeing / told if told else 0.0
    return f"conclusive {told} of {count} ({told / count:.1%}), the same {agreeing} of {told} ({share:.2%})"


def _coverage_of_times(judged: Sequence[Process], processes: Sequence[Process]) -> Coverage:
    pairs = []
    for case in processes[0]:
        center_s = median(time.value for each in processes if (time := time_of(each[case])))
        found = (time.interval for each in judged if (time := time_of(each[case])))
        pairs += [(interval, center_s) for interval in found if interval]
    return _coverage(pairs)


def _coverage_of_ratios(judged: Sequence[Process], processes: Sequence[Process]) -> Coverage:
    pairs = []
    for a, b in _pairs(processes[0]):
        every = [_ratio(each[a], each[b]) for each in processes]
        center = median(found.ratio for found in every if found)
        few = [found for each in judged if (found := _ratio(each[a], each[b]))]
        pairs += [(found.ci95, center) for found in few if found.ci95]
    return _coverage(pairs)


def _ratio(this: Result, other: Result) -> Speedup | None:
    """Return how many times as fast `this` is as `other`; None where one of them was not measured."""
    return speedup(this, other) if this.measurement and other.measurement else None


def _coverage(pairs: Sequence[tuple[Interval, float]]) -> Coverage:
    widths = [log(high / low) / 2 for (low, high), _ in pairs]
    held = sum(low <= center <= high for (low, high), center in pairs)
    return Coverage(len(pairs), held, median(widths) if widths else 0.0)


def _width_over_spread(processes: Sequence[Process]) -> str:
    shares, spreads = [], []
    for case in processes[0]:
        found = [time for each in processes if (time := time_of(each[case])) is not None]
        widths = [log(time.interval[1] / time.interval[0]) / 2 for time in found if time.interval]
        if len(found) > 1 and widths:
            spreads.append(NORMAL_95 * stdev(log(time.value) for time in found))
            shares.append(median(widths) / spreads[-1])
    return (
        f"{median(shares):.2f} (median of {len(shares)} cases); these are {median(spreads):.1%}"
        if shares
        else "unknown"
    )


def _equal_runs(processes: Sequence[Process]) -> str:
    """Return how many cases of equal runs `compare` calls changed, and the half width of their ratios."""
    sides = [Side(f"process {number}", tuple(each.values())) for number, each in enumerate(processes)]
    compared = [case for before, after in pairwise(sides) for case in compare_runs(before, after).cases]
    ratios = [case.ratio for case in compared if case.ratio and case.ratio.interval]
    changed = sum(case.change in ("faster", "slower") for case in compared)
    widths = [log(found.interval[1] / found.interval[0]) / 2 for found in ratios if found.interval]
    if not widths:
        return "unknown"
    return f"{changed} of {len(compared)} called changed, half width {median(widths):.1%} (median)"


def _pairs(process: Mapping[Case, object]) -> Iterator[tuple[Case, Case]]:
    for group in groups_of(list(process)):
        yield from combinations(group, 2)


def report_spreads(processes: Sequence[Process], peers: Sequence[Times]) -> None:
    """Print how medians and ratios spread from process to process, here and by blocked_autorange."""
    own = [{case: each.measurement.median_s for case, each in found.items() if each.measurement} for found in processes]
    for name, found in (("gpuexplore", own), ("blocked_autorange", peers)):
        times = _spreads([[each[case] for each in found if case in each] for case in found[0]])
        ratios = _spreads([[each[a] / each[b] for each in found if {a, b} <= set(each)] for a, b in _pairs(found[0])])
        print(f"{name:18} standard deviation from process to process: medians {times}, ratios {ratios}")


def _spreads(rows: Sequence[Sequence[float]]) -> str:
    deviations = [stdev(map(log, row)) for row in rows if len(row) > 1]
    if not deviations:
        return "unknown"
    mean_square = (sum(each**2 for each in deviations) / len(deviations)) ** 0.5
    return f"{median(deviations):.1%} (median), {mean_square:.1%} (root mean square)"


if __name__ == "__main__":
    main()
