"""Does every implementation agree with the float64 reference, in every dtype, at awkward shapes?"""

from collections.abc import Iterable, Iterator
from itertools import product

from gpuexplore.dtypes import DTYPES, DType
from gpuexplore.features.selftest.suite.bench import Bench
from gpuexplore.features.selftest.suite.check import SelfCheck
from gpuexplore.features.selftest.suite.contract import CheckFigure, CheckFinding, ended, judged, skipped
from gpuexplore.measure.candidates.candidate import unsupported
from gpuexplore.model import Case, Options, Result, Shape, Status
from gpuexplore.operations import OPERATIONS
from gpuexplore.operations.awkward import awkward_shapes
from gpuexplore.operations.contract import Operation

OPTIONS = Options(budget_s=0.02)
QUICK_DTYPES = ("fp32", "bf16")
MAX_SAID = 20
COMPILED_BY_TORCH = "torch_compile"  # takes ten seconds and more for each: last


def run(bench: Bench) -> CheckFinding:
    """Return how many cases are right, and each that is not."""
    wanted = list(_groups(bench))
    if not wanted:
        return skipped("no library that computes runs here")
    groups = [[case for case in group if _library(case) not in bench.unusable] for group in wanted]
    results: list[Result] = []
    for group in groups:
        if bench.is_over():
            break
        results += bench.measure(group)
    wrong = [ended(result) for result in results if result.status not in (Status.OK, Status.SKIPPED)]
    slow = sum(result.status is Status.SKIPPED for result in results)
    left = sum(map(len, groups)) - len(results)
    needed, met = _kernels(case for group in groups for case in group), _kernels(result.case for result in results)
    figures = [
        CheckFigure("right", len(results) - len(wrong) - slow, note="cases"),
        CheckFigure("not right", len(wrong), note="cases"),
        CheckFigure("too slow to try", slow, note="cases"),
        CheckFigure("out of time for", left, note="cases"),
        CheckFigure("implementations x dtypes met", len(met), note=f"of {len(needed)}"),
    ]
    more = [f"and {len(wrong) - MAX_SAID} more"] if len(wrong) > MAX_SAID else []
    notes = (f"Out of time for {left} cases of {sum(map(len, groups))}, of further shapes.",) if left else ()
    known = f"{len(met)} of {len(needed)} implementations x dtypes met{'' if wrong else ', none wrong'}"
    untried = [f"{bench.no_answer()}: {known}"] if needed - met else []
    libraries = {_library(case) for group in wanted for case in group if not _is_slow(case)} & bench.unusable
    untried += [f"libraries that do not run here were not tried: {', '.join(sorted(libraries))}"] if libraries else []
    return judged([*wrong[:MAX_SAID], *more], figures, notes, untried="; ".join(untried))


def _kernels(cases: Iterable[Case]) -> set[tuple[str, str, str]]:
    """Return what has to be met at one shape at least."""
    return {(case.operation, case.implementation, case.dtype) for case in cases if not _is_slow(case)}


def _library(case: Case) -> str:
    return OPERATIONS[case.operation].implementation_named(case.implementation).backend


def _is_slow(case: Case) -> bool:
    return _library(case) == COMPILED_BY_TORCH


def _groups(bench: Bench) -> Iterator[list[Case]]:
    """Yield groups of cases: the last shape of every operation before the others, what takes long to compile last."""
    names = QUICK_DTYPES if bench.is_quick else tuple(DTYPES)
    dtypes = [DTYPES[name] for name in names]
    shapes = {operation.name: awkward_shapes(operation)[::-1] for operation in OPERATIONS.values()}
    most = 1 if bench.is_quick else max(map(len, shapes.values()))
    plans = [(turn, is_slow) for is_slow in (False, True) for turn in range(1 if is_slow else most)]
    for turn, is_slow in plans:
        for operation, dtype in product(OPERATIONS.values(), dtypes):
            if turn < len(shapes[operation.name]):
                cases = _cases(operation, shapes[operation.name][turn], dtype, bench, is_slow=is_slow)
                if cases:
                    yield cases


def _cases(operation: Operation, shape: Shape, dtype: DType, bench: Bench, *, is_slow: bool) -> list[Case]:
    rows = [row for row in operation.implementations if (row.backend == COMPILED_BY_TORCH) is is_slow]
    return [
        Case(operation.name, shape, dtype.name, row.name, bench.device.id, OPTIONS)
        for row in rows
        if unsupported(operation, row, dtype, bench.device) is None
    ]


CHECK = SelfCheck("correctness", "Every implementation against the float64 reference", run, needs_s=10.0, share=0.45)
