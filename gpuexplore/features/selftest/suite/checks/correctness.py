"""The check that every implementation agrees with the float64 reference, in every dtype, at awkward shapes."""

from collections.abc import Iterable, Iterator
from itertools import product

from gpuexplore.core import Case, GpuExploreError, Options, Result, Status
from gpuexplore.core.dtypes import DTYPES, dtype_named
from gpuexplore.features.selftest.suite.contract import (
    Bench,
    CheckFigure,
    CheckFinding,
    SelfCheck,
    ended,
    judged,
    skipped,
)
from gpuexplore.measure.candidates.candidate import unsupported
from gpuexplore.operations import OPERATIONS, awkward_shapes

MAX_SAID = 20
COMPILED_BY_TORCH = "torch_compile"  # takes ten seconds and more for each: last


def _run(bench: Bench) -> CheckFinding:
    """Return how many cases are right, and each that is not."""
    wanted = list(_groups(bench))
    if not wanted:
        return skipped("no library runs here")
    groups = [[case for case in group if _library(case) not in bench.unusable] for group in wanted]
    results: list[Result] = []
    for group in groups:
        if bench.is_over():
            break
        results += bench.measure(group)
    wrong = [ended(result) for result in results if result.status not in (Status.OK, Status.SKIPPED)]
    slow = sum(result.status is Status.SKIPPED for result in results)
    left = sum(map(len, groups)) - len(results)
    needed = _kernels(case for group in groups for case in group)
    met = _kernels(result.case for result in results)
    figures = [
        CheckFigure("right", len(results) - len(wrong) - slow, note="cases"),
        CheckFigure("not right", len(wrong), note="cases"),
        CheckFigure("too slow to try", slow, note="cases"),
        CheckFigure("out of time for", left, note="cases"),
        CheckFigure("implementations x dtypes tried", len(met), note=f"of {len(needed)}"),
    ]
    more = [f"and {len(wrong) - MAX_SAID} more"] if len(wrong) > MAX_SAID else []
    notes = (f"Out of time for {left} of {sum(map(len, groups))} cases, at further shapes.",) if left else ()
    known = f"{len(met)} of {len(needed)} implementations x dtypes tried{'' if wrong else ', none wrong'}"
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
    names = ("fp32", "bf16") if bench.is_quick else tuple(DTYPES)
    dtypes = [DTYPES[name] for name in names]
    shapes = {operation.name: awkward_shapes(operation)[::-1] for operation in OPERATIONS.values()}
    most = 1 if bench.is_quick else max(map(len, shapes.values()))
    for rank, is_slow in [(rank, late) for late in (False, True) for rank in range(1 if late else most)]:
        for operation, dtype in product(OPERATIONS.values(), dtypes):
            if rank < len(shapes[operation.name]):
                shape = shapes[operation.name][rank]
                cases = [
                    Case(operation.name, shape, dtype.name, row.name, bench.device.id, Options(budget_s=0.02))
                    for row in operation.implementations
                    if (row.backend == COMPILED_BY_TORCH) is is_slow
                    and unsupported(operation, row, dtype, bench.device) is None
                ]
                if cases:
                    yield cases


CHECK = SelfCheck("correctness", "Every implementation against the float64 reference", _run, needs_s=10.0, share=0.45)


# The kernel that is launched is the one that is shown, by its registers.


def _run_registers(bench: Bench) -> CheckFinding:
    """Return the registers of our kernels, of as many as the time is enough for."""
    if "numba_cuda" not in bench.libraries():
        return skipped("numba-cuda, which the kernels need, does not run here")
    problems: list[str] = []
    figures: list[CheckFigure] = []
    left = list(_our_kernels(bench))
    while left and bench.left_s() > 6.0:  # to compile a kernel twice
        operation, implementation, dtype = left.pop(0)
        name = f"{operation}/{implementation} in {dtype}"
        try:
            found = bench.probe("registers", operation=operation, implementation=implementation, dtype=dtype)
        except GpuExploreError as error:
            problems.append(f"{name}: {error}")
            continue
        for payload in found:
            launched = payload["launched"]
            shown = payload["shown"]
            figures.append(
                CheckFigure(
                    name, launched, note=f"shown {shown} (CUDA {payload['toolkit']}), recorded {payload['recorded']}"
                )
            )
            if launched != shown:
                problems.append(f"{name}: the kernel launched has {launched} registers, the one shown {shown}")
    notes = (f"Out of time for {len(left)} more kernels.",) if left else ()
    if not figures and not problems:
        return skipped("out of time before a kernel was compiled")
    return judged(problems, figures, notes)


def _our_kernels(bench: Bench) -> Iterator[tuple[str, str, str]]:
    """Yield what names a kernel of ours: every one in one dtype, those of the ladder first."""
    for operation in OPERATIONS.values():
        if bench.is_quick and operation.name != "matmul":
            continue
        for row in operation.implementations:
            able = (
                name
                for name in ("fp32", "bf16")
                if unsupported(operation, row, dtype_named(name), bench.device) is None
            )
            if row.geometry and (dtype := next(able, None)):
                yield operation.name, row.name, dtype


REGISTERS = SelfCheck(
    "registers",
    "Registers of the kernel launched and of the one shown",
    _run_registers,
    kinds=("cuda",),
    needs_s=15.0,
    share=0.12,
)
