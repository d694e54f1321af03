"""Our kernels against the libraries and against the hardware's limits, in one run, as ratios.

On the CPU: the matmul ladder in fp32 and the best rung in bf16 against NumPy and torch and the ceiling of the FMA
loop. On a GPU, where one is present: the CUDA ladder against cuBLAS, memory-bound kernels against the bandwidth of
a copy, and torch's device times against `triton.testing.do_bench`. Every group is measured by gpuexplore's own core:
all implementations of one size and dtype in turns, each output checked. It asserts nothing.

    python -m benchmarks.kernels [--size 512,1024,2048,4096] [--dtype fp32,bf16] [--budget SECONDS] [--json]
"""

import argparse
import json
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from benchmarks.measurement import pin_environment
from gpuexplore.analysis.utilization.utilization import bytes_per_s, default_peak, flop_per_s, mfu
from gpuexplore.core.model import Case, Device, Options, Result, Shape
from gpuexplore.core.units import format_bytes_per_s, format_flop_per_s, format_percent, format_ratio, format_seconds
from gpuexplore.features.machine_code.analysis.ladder import kernels, libraries
from gpuexplore.operations import operation_named

CPU_SIZES, GPU_SIZES = (512, 1024, 2048, 4096), (4096, 8192)
CPU_DTYPES, GPU_DTYPES = ("fp32", "bf16"), ("fp32", "tf32", "bf16", "fp16")
MEMORY_BOUND = (
    ("copy", Shape.of(n=2**27)),
    ("vector_add", Shape.of(n=2**27)),
    ("triad", Shape.of(n=2**27)),
    ("matvec", Shape.of(m=2**14, n=2**14)),
    ("reduce_sum", Shape.of(m=2**14, n=2**14)),
    ("softmax", Shape.of(m=2**14, n=2**13)),
)
DO_BENCH_SIZES = (1024, 2048, 4096, 8192)


@dataclass(frozen=True, slots=True)
class Line:
    """One implementation in one group.

    Attributes:
        over_library: times as fast as the fastest library of the group; None when either has no time.
        of_limit: share of the peak, or for memory-bound operations of the copy's bandwidth, of one.
        status: or the reason why there is no time.
    """

    what: str
    dtype: str
    size: str
    implementation: str
    median_s: float | None
    rate: str
    over_library: float | None
    of_limit: float | None
    status: str


def main() -> None:
    """Measure what this machine has and print it."""
    arguments = _arguments()
    pin_environment()
    from gpuexplore.hardware import discover, ensure_ceiling

    devices = [ensure_ceiling(one) if one.kind == "cpu" else one for one in discover()]
    lines: list[Line] = []
    for device in devices:
        lines += on_cpu(device, arguments) if device.kind == "cpu" else on_gpu(device, arguments)
    if arguments.json:
        print(json.dumps([asdict(line) for line in lines], indent=1))
        return
    print(f"python {platform.python_version()}, {', '.join(one.name for one in devices)}")
    print_lines(lines)


def on_cpu(device: Device, arguments: argparse.Namespace) -> list[Line]:
    """Return the CPU ladder in fp32, and the best rung in every other dtype, against NumPy and torch."""
    matmul, lines = operation_named("matmul"), list[Line]()
    for dtype in arguments.dtype or CPU_DTYPES:
        own = [kernel.name for kernel in kernels(matmul, "numba_cpu")] if dtype == "fp32" else ["numba-cpu"]
        names = [*(library.name for library in libraries(matmul, "numba_cpu")), *own]
        for size in arguments.size or CPU_SIZES:
            cases = cases_of("matmul", matmul.shape_of_size(size), dtype, names)
            lines += group(cases, device, arguments.budget)
    return lines


def on_gpu(device: Device, arguments: argparse.Namespace) -> list[Line]:
    """Return the CUDA ladder against cuBLAS, memory-bound kernels, and device times against Triton's."""
    matmul, lines = operation_named("matmul"), list[Line]()
    names = ["torch", *(kernel.name for kernel in kernels(matmul, "numba_cuda"))]
    for dtype in arguments.dtype or GPU_DTYPES:
        for size in arguments.size or GPU_SIZES:
            cases = cases_of("matmul", matmul.shape_of_size(size), dtype, names)
            lines += group(cases, device, arguments.budget)
    for name, shape in MEMORY_BOUND:
        lines += group(cases_of(name, shape, "fp32", ["torch", "numba-cuda"]), device, arguments.budget)
    return lines + against_do_bench(device, arguments.budget)


def cases_of(operation: str, shape: Shape, dtype: str, names: Sequence[str]) -> list[Case]:
    """Return the cases of one group; `group` puts them on a device."""
    return [Case(operation, shape, dtype, name, "") for name in names]


def group(asked: Sequence[Case], device: Device, budget_s: float) -> list[Line]:
    """Measure implementations in turns and return a line for each; a library is what is not ours."""
    from gpuexplore.measure.conditions.isolation import ProgressHooks
    from gpuexplore.measure.runner import measure_group

    cases = [replace(one, device=device.id, options=Options(budget_s=budget_s)) for one in asked]
    results: dict[Case, Result] = {}

    def keep(event: Case | Result) -> None:
        if isinstance(event, Result):
            results[event.case] = event

    measure_group(cases, device, progress=ProgressHooks(keep))
    theirs = [results[case] for case in cases if not case.implementation.startswith("numba")]
    best = min((_median_s(their) for their in theirs), default=None)
    return [_line(results[case], best) for case in cases]


def _line(result: Result, library_s: float | None) -> Line:
    case, median_s = result.case, result.measurement.median_s if result.measurement else None
    flops, moved = flop_per_s(result), bytes_per_s(result)
    is_product = operation_named(case.operation).is_matrix_product and case.operation != "matvec"
    bound = mfu(result, default_peak(result)) if is_product else None
    return Line(
        what=case.operation,
        dtype=case.dtype,
        size=str(case.shape),
        implementation=case.implementation,
        median_s=median_s,
        rate=format_flop_per_s(flops) if bound is not None or not moved else format_bytes_per_s(moved),
        over_library=library_s / median_s if library_s and median_s and library_s != float("inf") else None,
        of_limit=bound if bound is not None else _of_bandwidth(result, moved),
        status=result.reason or result.status.value,
    )


def _of_bandwidth(result: Result, moved: float | None) -> float | None:
    device = result.environment.device if result.environment else None
    return moved / device.bandwidth.bytes_per_s if moved and device and device.bandwidth else None


def _median_s(result: Result) -> float:
    return result.measurement.median_s if result.measurement else float("inf")


def against_do_bench(device: Device, budget_s: float) -> list[Line]:
    """Return torch's fp32 products measured by us, warm, and by Triton, whose ratio stands as `over_library`."""
    try:
        import torch
        from triton.testing import do_bench
    except ImportError as error:
        return [Line("do_bench", "fp32", "", "torch", None, "", None, None, f"not compared: {error}")]
    lines = []
    for size in DO_BENCH_SIZES:
        a, b = (torch.randn(size, size, device="cuda") for _ in range(2))
        out = torch.empty(size, size, device="cuda")
        theirs_s = do_bench(lambda a=a, b=b, out=out: torch.mm(a, b, out=out), return_mode="median") * 1e-3
        shape = operation_named("matmul").shape_of_size(size)
        (ours,) = group(cases_of("matmul", shape, "fp32", ["torch"]), device, budget_s)
        ratio = theirs_s / ours.median_s if ours.median_s else None
        lines.append(Line("do_bench", "fp32", str(shape), "torch", theirs_s, "", ratio, None, "their time over ours"))
    return lines


def print_lines(lines: Sequence[Line]) -> None:
    """Print a table, groups apart."""
    last = None
    for line in lines:
        here = (line.what, line.dtype, line.size)
        if here != last:
            print(f"\n{line.what} {line.dtype} {line.size}")
            print(f"  {'implementation':24} {'median':>10} {'rate':>14} {'x library':>10} {'of limit':>9}  status")
        last = here
        over = format_ratio(line.over_library)
        limit = format_percent(line.of_limit)
        figures = f"{format_seconds(line.median_s):>10} {line.rate:>14} {over:>10} {limit:>9}"
        print(f"  {line.implementation:24} {figures}  {line.status}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--size", type=lambda text: [int(word) for word in text.split(",")], help="products, e.g. 512,1024"
    )
    parser.add_argument("--dtype", type=lambda text: text.split(","), help="e.g. fp32,bf16")
    parser.add_argument("--budget", type=float, default=1.0, help="seconds of sampling a case (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser.parse_args()


if __name__ == "__main__":
    main()
