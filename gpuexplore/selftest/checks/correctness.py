"""Does every implementation agree with the float64 reference, in every dtype, at awkward shapes?"""

from collections.abc import Iterator
from itertools import product

from gpuexplore.dtypes import DTYPES, DType
from gpuexplore.measure.candidate import unsupported
from gpuexplore.model import Case, Options, Result, Shape, Status
from gpuexplore.operations import OPERATIONS
from gpuexplore.operations.awkward import awkward_shapes
from gpuexplore.operations.contract import Operation
from gpuexplore.selftest.bench import Bench
from gpuexplore.selftest.contract import Check, Figure, Finding, judged, skipped

OPTIONS = Options(budget_s=0.02)
QUICK_DTYPES = ("fp32", "bf16")
MAX_SAID = 20
COMPILED_BY_TORCH = "torch_compile"  # takes ten seconds and more for each: last


def run(bench: Bench) -> Finding:
    """Return how many cases are right, and each that is not."""
    groups = list(_groups(bench))
    results: list[Result] = []
    for group in groups:
        if bench.is_over():
            break
        results += bench.measure(group)
    wrong = [_told(result) for result in results if result.status not in (Status.OK, Status.SKIPPED)]
    slow = sum(result.status is Status.SKIPPED for result in results)
    wanted = {_kernel(case) for group in groups for case in group if not _is_slow(case)}
    met = {_kernel(result.case) for result in results}
    left = sum(map(len, groups)) - len(results)
    figures = (
        Figure("right", len(results) - len(wrong) - slow, note="cases"),
        Figure("not right", len(wrong), note="cases"),
        Figure("too slow to try", slow, note="cases"),
        Figure("out of time for", left, note="cases"),
        Figure("implementations x dtypes met", len(met & wanted), note=f"of {len(wanted)}"),
    )
    if not wrong and wanted - met:
        return skipped(
            f"out of time: {len(met & wanted)} of {len(wanted)} implementations x dtypes met, none wrong", figures
        )
    more = [f"and {len(wrong) - MAX_SAID} more"] if len(wrong) > MAX_SAID else []
    notes = (f"Out of time for {left} cases of {sum(map(len, groups))}, of further shapes.",) if left else ()
    return judged([*wrong[:MAX_SAID], *more], list(figures), notes)


def _kernel(case: Case) -> tuple[str, str, str]:
    return case.operation, case.implementation, case.dtype


def _is_slow(case: Case) -> bool:
    row = OPERATIONS[case.operation].implementation_named(case.implementation)
    return row.backend == COMPILED_BY_TORCH


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
    rows = [
        row
        for row in operation.implementations
        if (row.backend == COMPILED_BY_TORCH) is is_slow and row.backend not in bench.unusable
    ]
    return [
        Case(operation.name, shape, dtype.name, row.name, bench.device.id, OPTIONS)
        for row in rows
        if unsupported(operation, row, dtype, bench.device) is None
    ]


def _told(result: Result) -> str:
    case = result.case
    return f"{case.operation} {case.shape} {case.dtype} {case.implementation} ended {result.status}: {result.reason}"


CHECK = Check("correctness", "Every implementation against the float64 reference", run, needs_s=10.0, share=0.45)
