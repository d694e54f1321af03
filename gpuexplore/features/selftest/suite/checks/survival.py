"""The check that an illegal access, or too little memory, ends one case and no other."""

from collections.abc import Iterator, Mapping, Sequence

from gpuexplore.core.model import Case, Options, Result, Shape, Status
from gpuexplore.features.selftest.suite.breaking import OPERATION, OUT_OF_BOUNDS, out_of_memory_of
from gpuexplore.features.selftest.suite.contract import Bench, CheckFigure, CheckFinding, SelfCheck, judged, skipped

CONTROLS = {"numba_cuda": "numba-cuda", "torch": "torch"}
BUILD_S = 12.0  # to build a sum of 1000 elements and to call it takes a fraction of it


def _run(bench: Bench) -> CheckFinding:
    """Return what becomes of cases that break, and of those measured with and after them."""
    here = [name for name in CONTROLS if name in bench.libraries()][: 1 if bench.is_quick else None]
    if not here:
        return skipped("neither numba-cuda nor torch runs here")
    expected: dict[str, tuple[Status, ...]] = (
        {OUT_OF_BOUNDS: (Status.ERROR, Status.CRASHED)} if "numba_cuda" in here else {}
    )
    expected |= {out_of_memory_of(library): (Status.OUT_OF_MEMORY,) for library in here}
    problems: list[str] = []
    figures: list[CheckFigure] = []
    unfinished: list[str] = []
    controls = [CONTROLS[library] for library in here]
    with bench.hanging_after(BUILD_S):
        for breaking, endings in expected.items():
            together = _measured(bench, [controls[0], breaking, *controls[1:]])
            behind = _measured(bench, controls)
            problems += _problems(breaking, endings, together, behind)
            result = together.get(breaking)
            status = str(result.status) if result else "no result"
            figures.append(CheckFigure(breaking, status, note=(result and result.reason) or ""))
            if len(together) + len(behind) < 1 + 2 * len(controls):
                unfinished.append(breaking)
    untried = f"{bench.no_answer()}; without all results: {', '.join(unfinished)}" if unfinished else ""
    return judged(problems, figures, untried=untried)


def _measured(bench: Bench, names: Sequence[str]) -> dict[str, Result]:
    """Return the results of these implementations, measured as one group, by their names."""
    options = Options(budget_s=0.01)
    shape = Shape.of(n=1000)
    cases = [Case(OPERATION, shape, "fp32", name, bench.device.id, options) for name in names]
    return {result.case.implementation: result for result in bench.measure(cases)}


def _problems(
    breaking: str, endings: Sequence[Status], together: Mapping[str, Result], behind: Mapping[str, Result]
) -> Iterator[str]:
    """Yield what is wrong with how it ended, and with the controls as one group with it and afterwards."""
    broken = together.get(breaking)
    if broken is not None and broken.status not in endings:
        yield f"{breaking} should end {endings[0]}, but ended {broken.status}"
    for where, results in (("beside", together), ("behind", behind)):
        for name, result in results.items():
            if name != breaking and result.status is not Status.OK:
                yield f"{name} {where} {breaking} ended {result.status}: {result.reason}"


CHECK = SelfCheck("survival", "One broken case ends alone", _run, kinds=("cuda",), share=0.3)
