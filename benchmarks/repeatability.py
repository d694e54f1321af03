"""How often an interval of one process holds the median of many, and a verdict of one process that of many.

Five products, sums and softmaxes are measured by NumPy and torch in many fresh processes, as `gpuexplore run` would.
The grand median of a case is the median of the processes' medians. Printed for each case: how often the interval of one
process covers it, by its samples alone ("within") and with this machine's table (`gpuexplore repeatability`, measured
before where there is none); and how often torch was called faster, slower or neither, and how many of these verdicts
another process contradicts. Results that others disturbed carry a flag: they are counted apart.

    python -m benchmarks.repeatability [--processes 60] [--table 12] [--json FILE]
"""

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from statistics import median

from gpuexplore.analysis.speedup import speedup
from gpuexplore.cli.repeatability_command import measure as measure_table
from gpuexplore.core.model import DISTURBED, Case, Device, Options, Result
from gpuexplore.core.serialization import encode
from gpuexplore.core.statistics import median_interval, quantile
from gpuexplore.hardware import discover
from gpuexplore.jobs.engines.local import LocalEngine
from gpuexplore.measure.conditions.environment import utc_now
from gpuexplore.measure.conditions.repeatability import Repeatability, save_repeatability, spreads_of
from gpuexplore.operations import OPERATIONS

CASES = (("matmul", 128), ("matmul", 512), ("vector_add", 10_000), ("vector_add", 1_000_000), ("softmax", 512))
IMPLEMENTATIONS = ("numpy", "torch")

Interval = tuple[float, float]
Process = dict[Case, Result]


@dataclass(frozen=True, slots=True)
class Coverage:
    """Of one case: how many intervals of single processes cover the grand median, seconds and shares."""

    grand_s: float
    processes: int
    within: float
    with_table: float
    half_width: float
    off_95: float


def main() -> None:
    """Measure, and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=60)
    parser.add_argument("--table", type=int, default=12, help="processes of this machine's table; 0: as it is")
    parser.add_argument("--json", type=Path, help="write every result to this file")
    arguments = parser.parse_args()
    device = _device(arguments.table)
    processes = [_measured(device) for _ in range(arguments.processes)]
    if arguments.json:
        arguments.json.write_text(json.dumps([encode(list(process.values())) for process in processes]))
    _print_coverage(processes)
    _print_verdicts(processes)


def _device(processes: int) -> Device:
    """Return the CPU, after its table was measured where that is wanted."""
    device = discover()[0]
    if not processes:
        return device
    device, runs = measure_table(device, processes)
    table = Repeatability(utc_now(), processes, spreads_of(runs, device))
    save_repeatability(device, table)
    for spread in sorted(table.spreads, key=lambda spread: (spread.size_class, spread.threads, spread.library)):
        ratios = "unknown" if spread.of_ratios is None else f"±{spread.of_ratios:.1%}"
        row = f"{spread.size_class:7} {spread.threads:5} {spread.library:10} ±{spread.deviation:.1%}"
        print(f"table: {row}, ratios {ratios}")
    return device


def _measured(device: Device) -> Process:
    """Return the results of all cases from one fresh process."""
    found: Process = {}

    def keep(event: Case | Result) -> None:
        if isinstance(event, Result):
            found[event.case] = event

    engine = LocalEngine([device])
    try:
        for name, size in CASES:
            shape = OPERATIONS[name].shape_of_size(size)
            group = [Case(name, shape, "fp32", each, device.id, Options()) for each in IMPLEMENTATIONS]
            engine.measure(group, keep, lambda: False)
    finally:
        engine.close()
    return found


def _print_coverage(processes: Sequence[Process]) -> None:
    print(
        f"\n{'case':46} {'grand median':>12} {'n':>3} {'covered within':>15} {'with table':>11} {'half width':>11} "
        f"{'95 % are off by':>16}"
    )
    for flagged in (False, True):
        print("flagged contended" if flagged else "without a flag")
        for case in processes[0]:
            found = [process[case] for process in processes if _is_flagged(process[case]) == flagged]
            usable = [result for result in found if result.measurement and result.measurement.ci95_s]
            if len(usable) < 2:
                continue
            row = _coverage(usable)
            print(
                f"{_name(case):46} {row.grand_s * 1e6:9.2f} us {row.processes:3} {row.within:15.0%} "
                f"{row.with_table:11.0%} {row.half_width:11.1%} {row.off_95:16.1%}"
            )


def _coverage(results: Sequence[Result]) -> Coverage:
    measured = [result.measurement for result in results if result.measurement]
    grand_s = median(measurement.median_s for measurement in measured)
    with_table = [interval for measurement in measured if (interval := measurement.ci95_s)]
    within = [interval for measurement in measured if (interval := median_interval(measurement.samples_s))]
    return Coverage(
        grand_s,
        len(measured),
        _share_covering(within, grand_s),
        _share_covering(with_table, grand_s),
        median((high - low) / 2 / grand_s for low, high in with_table),
        quantile([abs(log(measurement.median_s / grand_s)) for measurement in measured], 0.95),
    )


def _share_covering(intervals: Sequence[Interval], value: float) -> float:
    return sum(low <= value <= high for low, high in intervals) / len(intervals)


def _print_verdicts(processes: Sequence[Process]) -> None:
    print("\nIs torch faster than numpy? Verdicts of single processes, results without a flag")
    for name, size in CASES:
        verdicts: Counter[str] = Counter()
        for process in processes:
            numpy, torch = (_of(process, name, size, each) for each in IMPLEMENTATIONS)
            if numpy.measurement and torch.measurement and not (_is_flagged(numpy) or _is_flagged(torch)):
                verdicts[_verdict(torch, numpy)] += 1
        decided = verdicts["faster"] + verdicts["slower"]
        contradicted = min(verdicts["faster"], verdicts["slower"]) / decided if decided else 0.0
        print(f"{name} {size}: {dict(verdicts)}, contradicted: {contradicted:.0%}")


def _verdict(torch: Result, numpy: Result) -> str:
    told = speedup(torch, numpy).verdict.relation
    return {"above": "faster", "below": "slower"}.get(told or "", "neither")


def _of(process: Process, name: str, size: int, implementation: str) -> Result:
    shape = OPERATIONS[name].shape_of_size(size)
    return next(
        result
        for case, result in process.items()
        if (case.operation, case.shape, case.implementation) == (name, shape, implementation)
    )


def _is_flagged(result: Result) -> bool:
    return bool({flag.name for flag in result.flags} & DISTURBED)


def _name(case: Case) -> str:
    return f"{case.operation} {case.shape} {case.implementation}"


if __name__ == "__main__":
    main()
