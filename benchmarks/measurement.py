"""gpuexplore's timing against torch.utils.benchmark and perfplot: wall time and worst error on the same ten cases.

The cases are NumPy's and torch's fp32 matmul at five sizes, on equal inputs, into preallocated outputs, on one
thread per core. The truth is the median of an interleaved run: in every round each case of a size once, in random
order. A slice of it is taken before and after each contestant measures a size, and the contestant is held against the
mean of the two, because machines drift: how far the slices lie apart over the whole run is printed too.

Other processes spoil everything on a small machine, and virtual machines change their pace for seconds at a time. So
what a contestant measured does not count, and is taken again, when others took more than 5 % of the CPU meanwhile or
when the slices around it differ by more than 5 %, of any process; where that never ends, the least disturbed counts.

Idle pool threads disturb the next library's calls: OpenBLAS's spin for 0.1 s after a call, libgomp's for some
milliseconds, and on two cores a call meanwhile takes up to 100 times as long. So the truth is the undisturbed steady
state: wait until the process is quiet, wake the library's threads by untimed calls, then time. For all contestants
alike `POOL_SETTINGS`, which shorten the spinning, are set before NumPy and torch are loaded, and every library and
every contestant has run once before its time is taken.

gpuexplore's wall time is all of `measure_group`: environment, cost guard, build, float64 reference, both checks,
warm-up, sampling, the overhead of a call, telemetry and flags. The peers time a callable and check nothing.
perfplot reports the minimum, the others the median.

    python -m benchmarks.measurement [--repetitions N] [--slice SECONDS] [--json]
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import asdict, dataclass
from functools import partial
from io import StringIO
from random import Random
from statistics import median
from typing import Generic, TypeVar

from gpuexplore.core.model import DEFAULT_BUDGET_S, Case, Device, Options, Result, Shape
from gpuexplore.core.pools import POOL_SETTINGS

SIZES = (32, 128, 256, 512, 1024)
IMPLEMENTATIONS = ("numpy", "torch")
BASELINE = "blocked_autorange 0.2 s"
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
SEED = 1
WAKE_S = 5e-3  # untimed calls of the truth: long against what a thread or a cache needs to come back
DISTURBED_ABOVE = 0.05  # share of the CPU that others took
SHIFTED_ABOVE = 0.05  # difference of the truth before and after
ATTEMPTS = 10
TRUE_SAMPLE_S = 200e-6
TRUE_SAMPLES = 3  # of one case in one round

Call = Callable[[], object]
Runs = Mapping[Case, Call]
Times = Mapping[Case, float]  # seconds per call
Samples = Mapping[Case, Sequence[float]]
Contestant = Callable[[Sequence[Case]], Times]  # measures the cases of one size
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Observed(Generic[Value]):
    """What was measured, how long that took, and the share of the CPU that others took meanwhile."""

    value: Value
    wall_s: float
    lost_share: float


@dataclass(frozen=True, slots=True)
class Turn:
    """What a contestant said, what was true around it, what it took, and how disturbed it was."""

    times_s: Times
    truth_s: Times
    wall_s: float
    lost_share: float
    shift: float

    @property
    def disturbance(self) -> float:
        """How disturbed it was: above 1 it does not count."""
        return max(self.lost_share / DISTURBED_ABOVE, self.shift / SHIFTED_ABOVE)


@dataclass(frozen=True, slots=True)
class Contest:
    """Every contestant's turns, and the slices of the truth before, between and after them."""

    turns: Mapping[str, Sequence[Turn]]
    slices: Sequence[Times]


@dataclass(frozen=True, slots=True)
class Score:
    """How one contestant did over all repetitions; ratios are to the baseline's."""

    contestant: str
    wall_s: float
    wall_ratio: float
    worst_error: float
    worst_error_ratio: float
    largest_error: float
    worst_case: str


def worst_error(times_s: Times, truth_s: Times) -> tuple[float, Case]:
    """Return the largest relative error over the cases, and its case; a case without a time is 100 % wrong."""
    errors = ((abs(times_s.get(case, 0.0) / right - 1), case) for case, right in truth_s.items())
    return max(errors, key=lambda error: error[0])


def between(before_s: Times, after_s: Times) -> Times:
    """Return the truth of a turn: the mean of the slices around it."""
    return {case: (before_s[case] + after_s[case]) / 2 for case in before_s}


def shift(before_s: Times, after_s: Times) -> float:
    """Return how far two slices of the truth differ: the worst case's ratio, minus 1."""
    return max(max(before_s[case] / after_s[case], after_s[case] / before_s[case]) for case in before_s) - 1


def joined(parts: Sequence[Turn]) -> Turn:
    """Return the turns of all sizes as one: wall times add up, the most disturbed part counts."""
    return Turn(
        times_s={case: time_s for part in parts for case, time_s in part.times_s.items()},
        truth_s={case: time_s for part in parts for case, time_s in part.truth_s.items()},
        wall_s=sum(part.wall_s for part in parts),
        lost_share=max(part.lost_share for part in parts),
        shift=max(part.shift for part in parts),
    )


def score(turns: Mapping[str, Sequence[Turn]], baseline: str = BASELINE) -> list[Score]:
    """Return a row for each contestant: medians over its turns, and the worst of all."""
    walls = {name: median(one.wall_s for one in some) for name, some in turns.items()}
    errors = {name: [worst_error(one.times_s, one.truth_s) for one in some] for name, some in turns.items()}
    usual = {name: median(error for error, _ in some) for name, some in errors.items()}
    worst = {name: max(some, key=lambda one: one[0]) for name, some in errors.items()}
    return [
        Score(
            contestant=name,
            wall_s=walls[name],
            wall_ratio=walls[name] / walls[baseline],
            worst_error=usual[name],
            worst_error_ratio=usual[name] / usual[baseline],
            largest_error=worst[name][0],
            worst_case=label(worst[name][1]),
        )
        for name in turns
    ]


def drift(slices: Sequence[Times]) -> float:
    """Return how far the slices of the truth lie apart: the largest over the smallest median, worst case, minus 1."""
    return max(max(some) / min(some) - 1 for some in _by_case(slices).values())


def label(case: Case) -> str:
    """Return e.g. `numpy 128`."""
    return f"{case.implementation} {next(iter(case.shape))}"


def cases(budget_s: float = DEFAULT_BUDGET_S) -> list[Case]:
    """Return the ten cases, group by group."""
    shapes, options = [Shape.of(m=n, k=n, n=n) for n in SIZES], Options(budget_s=budget_s)
    return [Case("matmul", shape, "fp32", name, "cpu", options) for shape in shapes for name in IMPLEMENTATIONS]


def make_runs(chosen: Sequence[Case], device: Device) -> Runs:
    """Return the call of every case, e.g. `numpy.matmul(a, b, out=o)`, on gpuexplore's inputs."""
    from gpuexplore.core.dtypes import dtype_named
    from gpuexplore.measure.candidates.candidate import build_candidate
    from gpuexplore.measure.check.inputs import make_inputs
    from gpuexplore.operations import operation_named

    runs: dict[Case, Call] = {}
    for case in chosen:
        operation, dtype = operation_named(case.operation), dtype_named(case.dtype)
        inputs = make_inputs(operation, case.shape, dtype, "normal")
        runs[case] = build_candidate(case, operation, device, inputs=inputs, clock=time.perf_counter_ns).run
    return runs


def take_truth(runs: Runs, seconds: float, random: Random) -> dict[Case, list[float]]:
    """Return seconds per call from the undisturbed ones of the rounds that go on for `seconds`."""
    rounds: list[Observed[Samples]] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        rounds.append(observe(lambda: _take_round(runs, random)))
    rounds.sort(key=lambda one: one.lost_share)
    kept = [round_.value for round_ in rounds if round_.lost_share <= DISTURBED_ABOVE] or [rounds[0].value]
    return {case: [sample for one in kept for sample in one[case]] for case in runs}


def _take_round(runs: Runs, random: Random) -> Samples:
    from gpuexplore.measure.conditions.isolation import wait_for_idle_threads

    samples_s: dict[Case, list[float]] = {}
    for case in random.sample(list(runs), len(runs)):
        wait_for_idle_threads()
        calls = max(1, round(TRUE_SAMPLE_S / _wake(runs[case])))
        samples_s[case] = [_per_call_s(runs[case], calls) for _ in range(TRUE_SAMPLES)]
    return samples_s


def observe(measure: Callable[[], Value]) -> "Observed[Value]":
    """Return what `measure` returns, how long it took, and the share of the machine's CPU that others took."""
    from gpuexplore.hardware import cpu_lost_share, read_cpu_times

    before, start = read_cpu_times(), time.perf_counter()
    value = measure()
    wall_s = time.perf_counter() - start
    return Observed(value, wall_s, cpu_lost_share(before, read_cpu_times()) or 0.0)


def _wake(run: Call) -> float:
    """Call until the library's threads, the caches and the clock are there; return seconds of the fastest call."""
    fastest_s, start = float("inf"), time.perf_counter()
    while time.perf_counter() - start < WAKE_S:
        fastest_s = min(fastest_s, _per_call_s(run, 1))
    return fastest_s


def _per_call_s(run: Call, calls: int) -> float:
    start = time.perf_counter_ns()
    for _ in range(calls):
        run()
    return (time.perf_counter_ns() - start) * 1e-9 / calls


def contestants(runs: Runs, device: Device) -> dict[str, Contestant]:
    """Return every contestant as a call that measures the cases of one size; the baseline is the first."""
    from torch.utils.benchmark import Timer

    timers = {case: Timer("run()", globals={"run": run}, num_threads=device.cores or 1) for case, run in runs.items()}
    return {
        BASELINE: lambda some: {case: timers[case].blocked_autorange(min_run_time=0.2).median for case in some},
        "adaptive_autorange": lambda some: {case: timers[case].adaptive_autorange().median for case in some},
        "perfplot": lambda some: _by_perfplot({case: runs[case] for case in some}),
        "gpuexplore": lambda some: _by_gpuexplore(some, device),
    }


def _by_perfplot(runs: Runs) -> Times:
    """Measure one size with perfplot's own defaults, without its check: its fixed tolerances refuse a right product."""
    import perfplot

    with redirect_stdout(StringIO()):  # it prints an empty line
        data = perfplot.bench(
            setup=lambda _: (),
            kernels=list(runs.values()),
            n_range=[next(iter(runs)).shape["n"]],
            labels=[label(case) for case in runs],
            equality_check=None,
            show_progress=False,
        )
    return {case: float(row[0]) for case, row in zip(runs, data.timings_s, strict=True)}


def _by_gpuexplore(some: Sequence[Case], device: Device) -> Times:
    """Measure with gpuexplore's core; what it keeps for the process is forgotten first, so that every turn pays."""
    from gpuexplore.measure.conditions.isolation import ProgressHooks
    from gpuexplore.measure.runner import measure_group
    from gpuexplore.measure.sample import contrast

    contrast._known.clear()
    results: list[Result] = []
    keep = ProgressHooks(lambda event: results.append(event) if isinstance(event, Result) else None)
    measure_group(some, device, progress=keep)
    return {result.case: result.measurement.median_s for result in results if result.measurement}


def compete(chosen: Sequence[Case], repetitions: int, slice_s: float) -> Contest:
    """Return what `repetitions` turns of every contestant gave, with the truth before, between and after."""
    from gpuexplore.measure.check.group import groups_of
    from gpuexplore.measure.conditions.isolation import isolate_core

    device = prepare_device()
    runs = make_runs(chosen, device)
    entered = contestants(runs, device)
    for measure in entered.values():
        for group in groups_of(chosen):
            measure(group)
    with isolate_core():
        return _take_turns(entered, runs, repetitions, slice_s)


def _take_turns(entered: Mapping[str, Contestant], runs: Runs, repetitions: int, slice_s: float) -> Contest:
    from gpuexplore.measure.check.group import groups_of

    random, slices = Random(SEED), list[Times]()
    turns: dict[str, list[Turn]] = {name: [] for name in entered}
    for _ in range(repetitions):
        parts: dict[str, list[Turn]] = {name: [] for name in entered}
        for group in groups_of(list(runs)):
            some = {case: runs[case] for case in group}

            def truth(some: Runs = some) -> Times:
                slices.append({case: median(them) for case, them in take_truth(some, slice_s, random).items()})
                return slices[-1]

            truth()
            for name in random.sample(list(entered), len(entered)):
                parts[name].append(take_turn(partial(entered[name], group), truth, slices[-1]))
        for name, some_turns in parts.items():
            turns[name].append(joined(some_turns))
    return Contest(turns, slices)


def take_turn(measure: Callable[[], Times], truth: Callable[[], Times], before_s: Times) -> Turn:
    """Return the first undisturbed turn of at most `ATTEMPTS`; else the least disturbed."""
    seen: list[Turn] = []
    for _ in range(ATTEMPTS):
        one = observe(measure)
        after_s = truth()
        seen.append(Turn(one.value, between(before_s, after_s), one.wall_s, one.lost_share, shift(before_s, after_s)))
        if seen[-1].disturbance <= 1:
            break
        before_s = after_s
    return min(seen, key=lambda turn: turn.disturbance)


def prepare_device() -> Device:
    """Return the CPU with its measured peaks, as a worker of the app has them before its first case."""
    from gpuexplore.hardware import ensure_ceiling
    from gpuexplore.hardware.cpu import cpu_device

    return ensure_ceiling(cpu_device())


def pin_environment() -> None:
    """Set threads, pool settings and priority as a worker of the app does; before NumPy is loaded."""
    from gpuexplore.core.pools import raise_priority
    from gpuexplore.hardware.cpu import affinity, physical_cores

    threads = str(physical_cores(affinity()))
    for name, value in (dict.fromkeys(THREAD_VARIABLES, threads) | dict(POOL_SETTINGS)).items():
        os.environ[name] = value
    os.environ.setdefault("MPLBACKEND", "Agg")  # perfplot loads matplotlib
    with suppress(PermissionError):  # the privilege of root, which a worker uses too
        raise_priority()


def describe_environment() -> dict[str, str]:
    """Return what a reader needs to compare the figures with others."""
    from importlib.metadata import version

    from gpuexplore.backends import load_backend
    from gpuexplore.hardware.cpu import cpu_name

    found = {"cpu": cpu_name(), "python": platform.python_version(), "perfplot": version("perfplot")}
    for name in IMPLEMENTATIONS:
        found |= load_backend(name).versions()
    names = (*THREAD_VARIABLES, *POOL_SETTINGS, "OPENBLAS_CORETYPE")
    found["nice"] = str(os.getpriority(os.PRIO_PROCESS, 0))
    return found | {name: os.environ[name] for name in names if name in os.environ}


def table(scores: Sequence[Score]) -> str:
    """Return the scores as aligned text."""
    head = f"{'contestant':24} {'wall':>8} {'ratio':>6} {'worst error':>12} {'ratio':>6} {'largest':>9}  where"
    rows = (
        f"{one.contestant:24} {one.wall_s:6.2f} s {one.wall_ratio:6.2f} {one.worst_error:12.1%} "
        f"{one.worst_error_ratio:6.2f} {one.largest_error:9.1%}  {one.worst_case}"
        for one in scores
    )
    return "\n".join((head, *rows))


def main() -> None:
    """Compete and print; asserts nothing."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repetitions", type=int, default=5, help="turns of every contestant (5)")
    parser.add_argument("--slice", type=float, default=0.3, help="seconds of each slice of the truth (0.3)")
    parser.add_argument("--budget", type=float, default=DEFAULT_BUDGET_S, help="of gpuexplore: seconds for a case")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    chosen = parser.parse_args()
    pin_environment()
    outcome = compete(cases(chosen.budget), chosen.repetitions, chosen.slice)
    print(json.dumps(report(outcome), indent=1) if chosen.json else describe(outcome))


def describe(outcome: Contest) -> str:
    """Return the environment, the truth with its drift, and the table."""
    truth = ", ".join(f"{label(case)} {median(some) * 1e6:.4g} µs" for case, some in _by_case(outcome.slices).items())
    lost = max(one.lost_share for some in outcome.turns.values() for one in some)
    return "\n".join(
        (
            ", ".join(f"{name} {value}" for name, value in describe_environment().items()),
            f"truth: {truth}",
            f"drift of the machine between {len(outcome.slices)} slices of the truth: {drift(outcome.slices):.1%}; "
            f"others took at most {lost:.1%} of the CPU in a turn; {_disturbed(outcome)} of "
            f"{sum(map(len, outcome.turns.values()))} turns stayed disturbed\n",
            table(score(outcome.turns)),
        )
    )


def _disturbed(outcome: Contest) -> int:
    return sum(one.disturbance > 1 for some in outcome.turns.values() for one in some)


def report(outcome: Contest) -> dict[str, object]:
    """Return everything as plain data."""
    return {
        "environment": describe_environment(),
        "drift": drift(outcome.slices),
        "slices_s": [_by_label(one) for one in outcome.slices],
        "turns": {name: [_plain(one) for one in some] for name, some in outcome.turns.items()},
        "scores": [asdict(one) for one in score(outcome.turns)],
    }


def _plain(turn: Turn) -> dict[str, object]:
    times = {"times_s": _by_label(turn.times_s), "truth_s": _by_label(turn.truth_s)}
    return times | {"wall_s": turn.wall_s, "lost_cpu_share": turn.lost_share, "shift": turn.shift}


def _by_case(slices: Sequence[Times]) -> dict[Case, list[float]]:
    present = dict.fromkeys(case for one in slices for case in one)
    return {case: [one[case] for one in slices if case in one] for case in present}


def _by_label(times_s: Times) -> dict[str, float]:
    return {label(case): seconds for case, seconds in times_s.items()}


if __name__ == "__main__":
    main()
