"""Does an illegal access, or too little memory, end one case and no other?"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpuexplore.features.selftest.suite.bench import Bench, SelfCheck
from gpuexplore.features.selftest.suite.breaking import OPERATION, OUT_OF_BOUNDS, out_of_memory_of
from gpuexplore.features.selftest.suite.contract import CheckFigure, CheckFinding, judged, skipped
from gpuexplore.model import Case, Options, Result, Shape, Status

SHAPE = Shape.of(n=1000)
BUDGET_S = 0.01
HANGS_S = 12.0  # to build a sum of 1000 elements and to call it: several times what it takes
AFTER_OUT_OF_BOUNDS = (Status.ERROR, Status.CRASHED)
CONTROLS = {"numba_cuda": "numba-cuda", "torch": "torch"}


@dataclass(frozen=True, slots=True)
class Trial:
    """An implementation that breaks, and what became of the controls.

    Attributes:
        expected: how it may end.
        beside: results of it and of the controls as one group, by implementation.
        behind: results of the controls afterwards.
        is_finished: whether every case has a result; else time was over.
    """

    breaking: str
    expected: tuple[Status, ...]
    beside: Mapping[str, Result]
    behind: Mapping[str, Result]
    is_finished: bool


def run(bench: Bench) -> CheckFinding:
    """Return what becomes of cases that break, and of those beside and behind them."""
    here = [name for name in CONTROLS if name in bench.libraries()][: 1 if bench.is_quick else None]
    if not here:
        return skipped("neither numba-cuda nor torch runs here")
    expected: dict[str, tuple[Status, ...]] = {OUT_OF_BOUNDS: AFTER_OUT_OF_BOUNDS} if "numba_cuda" in here else {}
    expected |= {out_of_memory_of(library): (Status.OUT_OF_MEMORY,) for library in here}
    with bench.hanging_after(HANGS_S):
        trials = [_tried(bench, *about, [CONTROLS[library] for library in here]) for about in expected.items()]
    unfinished = [trial.breaking for trial in trials if not trial.is_finished]
    return judged(
        [problem for trial in trials for problem in _problems(trial)],
        [_figure(trial) for trial in trials],
        untried=f"{bench.no_answer()}; without all results: {', '.join(unfinished)}" if unfinished else "",
    )


def _tried(bench: Bench, breaking: str, expected: tuple[Status, ...], controls: Sequence[str]) -> Trial:
    beside = _measured(bench, [controls[0], breaking, *controls[1:]])
    behind = _measured(bench, controls)
    is_finished = len(beside) + len(behind) == 1 + 2 * len(controls)
    return Trial(breaking, expected, beside, behind, is_finished)


def _measured(bench: Bench, names: Sequence[str]) -> dict[str, Result]:
    options = Options(budget_s=BUDGET_S)
    cases = [Case(OPERATION, SHAPE, "fp32", name, bench.device.id, options) for name in names]
    return {result.case.implementation: result for result in bench.measure(cases)}


def _figure(trial: Trial) -> CheckFigure:
    result = trial.beside.get(trial.breaking)
    return CheckFigure(
        trial.breaking, str(result.status) if result else "no result", note=(result and result.reason) or ""
    )


def _problems(trial: Trial) -> Iterator[str]:
    broken = trial.beside.get(trial.breaking)
    if broken is not None and broken.status not in trial.expected:
        yield f"{trial.breaking} should end {trial.expected[0]}, and ended {broken.status}"
    for where, results in (("beside", trial.beside), ("behind", trial.behind)):
        for name, result in results.items():
            if name != trial.breaking and result.status is not Status.OK:
                yield f"{name} {where} {trial.breaking} ended {result.status}: {result.reason}"


CHECK = SelfCheck("survival", "One broken case ends alone", run, kinds=("cuda",), share=0.3)
