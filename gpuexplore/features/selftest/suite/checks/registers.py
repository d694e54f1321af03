"""Is the kernel that is launched the one that is shown, by its registers?"""

from collections.abc import Iterator

from gpuexplore.dtypes import dtype_named
from gpuexplore.errors import GpuExploreError
from gpuexplore.features.selftest.suite.bench import Bench
from gpuexplore.features.selftest.suite.check import SelfCheck
from gpuexplore.features.selftest.suite.contract import CheckFigure, CheckFinding, judged, skipped
from gpuexplore.measure.candidates.candidate import unsupported
from gpuexplore.operations import OPERATIONS

DTYPES_TRIED = ("fp32", "bf16")
QUICK_OPERATIONS = ("matmul",)
ENOUGH_S = 6.0  # to compile a kernel twice


def run(bench: Bench) -> CheckFinding:
    """Return the registers of our kernels, of as many as the time is enough for."""
    if "numba_cuda" not in bench.libraries():
        return skipped("numba-cuda does not run here, and the kernels are its")
    problems: list[str] = []
    figures: list[CheckFigure] = []
    left = list(_kernels(bench))
    while left and bench.left_s() > ENOUGH_S:
        operation, implementation, dtype = left.pop(0)
        name = f"{operation}/{implementation} in {dtype}"
        try:
            found = bench.probe("registers", operation=operation, implementation=implementation, dtype=dtype)
        except GpuExploreError as error:
            problems.append(f"{name}: {error}")
            continue
        for payload in found:
            launched, shown = payload["launched"], payload["shown"]
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


def _kernels(bench: Bench) -> Iterator[tuple[str, str, str]]:
    """Yield what names a kernel of ours: every one in one dtype, those of the ladder first."""
    for operation in OPERATIONS.values():
        if bench.is_quick and operation.name not in QUICK_OPERATIONS:
            continue
        for row in operation.implementations:
            able = (
                name for name in DTYPES_TRIED if unsupported(operation, row, dtype_named(name), bench.device) is None
            )
            if row.geometry and (dtype := next(able, None)):
                yield operation.name, row.name, dtype


CHECK = SelfCheck(
    "registers", "Registers of the kernel launched and of the one shown", run, kinds=("cuda",), needs_s=15.0, share=0.12
)
