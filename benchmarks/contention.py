"""Flags of other work: the same cases alone, and while programs take part of the CPU.

    python -m benchmarks.contention [--passes N]

Measures 18 cases in this process, a pass alone and one beside each of the programs, in turns. The first table says how
many results carry `contended`, of each program; alone, these are false alarms, unless the machine was not quiet: what
others took while nothing ran is printed first. The second says how far two clock probes lie apart that have a group's
time between them, alone and beside a program. It asserts nothing.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from statistics import median, quantiles

from gpuexplore.cli.output import print_columns
from gpuexplore.core.model import Case, Device, Experiment, Result, Shape
from gpuexplore.core.units import format_percent
from gpuexplore.hardware import cpu_loss, discover, ensure_ceiling, read_cpu_times
from gpuexplore.measure.flags import DRIFTED_BY
from gpuexplore.measure.runner import sweep

PASSES = 6
OFF = 0.10
START_S, LOOK_S = 0.5, 1.0
LONGEST_S = 300  # a pass beside a program takes less
IMPLEMENTATIONS = ("numpy", "torch", "numba-cpu")
EXPERIMENTS = (
    Experiment("matmul", tuple(Shape.of(m=n, k=n, n=n) for n in (64, 256, 512)), ("fp32",), IMPLEMENTATIONS),
    Experiment("vector_add", tuple(Shape.of(n=n) for n in (2**10, 2**18, 2**22)), ("fp32",), IMPLEMENTATIONS),
)
ALONE = "nothing"
PINNED = """
import os, time
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
def busy(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass
"""
PROGRAMS: Mapping[str, str] = {
    "a busy loop on the first core": PINNED + "busy(1e9)",
    "2 ms in every 10 on the first core": PINNED + "while True: busy(0.002); time.sleep(0.008)",
    "5 ms in every 50 on the first core": PINNED + "while True: busy(0.005); time.sleep(0.045)",
    "a busy loop, on any core": PINNED.replace("{min(os.sched_getaffinity(0))}", "os.sched_getaffinity(0)")
    + "busy(1e9)",
    "copies of 256 MB on the last core": """
import os
import numpy as np
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
a = np.ones(2**25)
b = np.empty_like(a)
while True:
    np.copyto(b, a)
""",
}


@contextmanager
def beside(code: str) -> Iterator[None]:
    """Run `code` meanwhile, in a process that is no child of this one: children's time is our own."""
    limited = f"import signal; signal.alarm({LONGEST_S})\n{code}"  # also where this process is killed
    start = f"import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', {limited!r}], stdout=2).pid)"
    process = int(subprocess.run([sys.executable, "-c", start], stdout=subprocess.PIPE, check=True).stdout)
    try:
        time.sleep(START_S)
        yield
    finally:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def measured(device: Device) -> list[Result]:
    """Return the results of a pass."""
    found: list[Case | Result] = []
    for experiment in EXPERIMENTS:
        sweep(experiment, [device], report=found.append)
    results = [result for result in found if isinstance(result, Result)]
    for result in results:
        if not result.measurement:
            print(f"not counted: {result.case.implementation} at {result.case.shape}: {result.status}, {result.reason}")
    return [result for result in results if result.measurement]


def has(result: Result, flag: str) -> bool:
    """Return whether the result carries the flag of that name."""
    return any(found.name == flag for found in result.flags)


def median_s(result: Result) -> float:
    """Return the result's median seconds."""
    assert result.measurement
    return result.measurement.median_s


def flag_rows(results: Mapping[str, Sequence[Result]]) -> Iterator[tuple[str, ...]]:
    """Yield a row of the first table for each program; what is off is so by the medians of all results alone."""
    alone: dict[Case, list[float]] = {}
    for result in results[ALONE]:
        alone.setdefault(result.case, []).append(median_s(result))
    for name, found in results.items():
        plain = [result for result in found if not has(result, "contended")]
        off = [result for result in plain if abs(median_s(result) / median(alone[result.case]) - 1) > OFF]
        noisy = [result for result in off if has(result, "noisy") or has(result, "drifted")]
        unknown = sum(has(result, "contention_unknown") for result in found)
        yield (name, *map(str, (len(found), len(found) - len(plain), len(plain), unknown, len(off), len(noisy))))


def probe_rows(results: Mapping[str, Sequence[Result]]) -> Iterator[tuple[str, ...]]:
    """Yield a row of the second table for each program."""
    for name, found in results.items():
        ratios = [ratio for result in found if (ratio := probe_ratio(result))]
        if len(ratios) < 2:
            yield (name, str(len(ratios)), *["-"] * 4)
            continue
        cut = quantiles(ratios, n=20)
        drifted = sum(has(result, "drifted") for result in found)
        shown = (f"{value:.3f}" for value in (min(ratios), cut[0], median(ratios), cut[-1], max(ratios)))
        yield (name, str(len(ratios)), *shown, format_percent(drifted / len(found)))


def probe_ratio(result: Result) -> float | None:
    """Return the probe's rate after the samples over that before them; None where it did not run."""
    environment = result.environment
    before = environment.before.probe_flop_per_s if environment else None
    after = environment.after.probe_flop_per_s if environment else None
    return after / before if before and after else None


def _say_how_quiet() -> None:
    before = read_cpu_times()
    time.sleep(LOOK_S)
    loss = cpu_loss(before, read_cpu_times())
    print(f"others took {format_percent(loss.share)} of the CPU while nothing ran here (load {os.getloadavg()[0]:.1f})")


def main(passes: int) -> None:
    """Measure and print both tables."""
    device = ensure_ceiling(next(device for device in discover() if device.kind == "cpu"))
    measured(device)  # what is loaded and compiled once is not counted
    results: dict[str, list[Result]] = {name: [] for name in (ALONE, *PROGRAMS)}
    for _ in range(passes):
        _say_how_quiet()
        for name in results:
            with beside(PROGRAMS[name]) if name in PROGRAMS else nullcontext():
                results[name] += measured(device)
    heads = ("beside", "results", "contended", "not", "unknown", f"not, off by {OFF:.0%}", "of which noisy or drifted")
    print_columns([heads, *flag_rows(results)])
    print(f"\nclock probe after the samples over before; drifted is beyond {DRIFTED_BY} either way")
    print_columns([("beside", "pairs", "least", "5 %", "median", "95 %", "most", "drifted"), *probe_rows(results)])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passes", type=int, default=PASSES, help="of 18 results beside each program")
    main(parser.parse_args().passes)
