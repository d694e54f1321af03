"""Does an illegal access, or too little memory, end one case and no other?"""

from gpuexplore.model import Case, Options, Result, Shape, Status
from gpuexplore.selftest.bench import Bench
from gpuexplore.selftest.breaking import OPERATION, OUT_OF_BOUNDS, out_of_memory_of
from gpuexplore.selftest.contract import Check, Figure, Finding, judged, skipped

SHAPE = Shape.of(n=1000)
BUDGET_S = 0.01
AFTER_OUT_OF_BOUNDS = (Status.ERROR, Status.CRASHED)
CONTROLS = {"numba_cuda": "numba-cuda", "torch": "torch"}


def run(bench: Bench) -> Finding:
    """Return what becomes of cases that break, and of those beside and behind them."""
    here = [name for name in CONTROLS if name in bench.libraries()][: 1 if bench.is_quick else None]
    if not here:
        return skipped("neither numba-cuda nor torch runs here")
    problems: list[str] = []
    figures: list[Figure] = []
    trials: list[tuple[str, tuple[Status, ...]]] = (
        [(OUT_OF_BOUNDS, AFTER_OUT_OF_BOUNDS)] if "numba_cuda" in here else []
    )
    trials += [(out_of_memory_of(library), (Status.OUT_OF_MEMORY,)) for library in here]
    controls = [CONTROLS[library] for library in here]
    for breaking, expected in trials:
        beside = _measured(bench, [controls[0], breaking, *controls[1:]])
        behind = _measured(bench, controls)
        problems += _problems(breaking, expected, beside, behind, controls=controls)
        result = beside.get(breaking)
        figures.append(
            Figure(breaking, str(result.status) if result else "no result", note=(result and result.reason) or "")
        )
    if bench.is_over():
        return skipped(bench.no_answer(), tuple(figures))
    return judged(problems, figures)


def _measured(bench: Bench, names: list[str]) -> dict[str, Result]:
    options = Options(budget_s=BUDGET_S)
    cases = [Case(OPERATION, SHAPE, "fp32", name, bench.device.id, options) for name in names]
    return {result.case.implementation: result for result in bench.measure(cases)}


def _problems(
    breaking: str,
    expected: tuple[Status, ...],
    beside: dict[str, Result],
    behind: dict[str, Result],
    *,
    controls: list[str],
) -> list[str]:
    ended = beside[breaking].status if breaking in beside else None
    problems = (
        [] if ended in expected else [f"{breaking} should end {expected[0]}, and ended {ended or 'without a result'}"]
    )
    for where, results in (("beside", beside), ("behind", behind)):
        for name in controls:
            result = results.get(name)
            if result is None or result.status is not Status.OK:
                told = f"{result.status}: {result.reason}" if result else "without a result"
                problems.append(f"{name} {where} {breaking} ended {told}")
    return problems


CHECK = Check("survival", "One broken case ends alone", run, kinds=("cuda",), share=0.15)
