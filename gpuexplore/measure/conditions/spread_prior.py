"""How far processes lie from each other before anything was learned: by length of a call, threads and kind of machine.

The figures of a shared CPU are measured, with `benchmarks/conclusions.py`, on two cores of an AMD EPYC (Zen 3, a
virtual machine whose neighbours use the same cores): 60 cases of products, vectors, rows and training steps in fp32, in
four processes. Of other CPUs a fraction of them is assumed, and of GPUs two figures, until runs there have told more.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from gpuexplore.hardware import MachineKind

Length = Literal["to 20 µs", "to 1 ms", "to 40 ms", "longer"]
Threads = Literal["one", "many"]

ENDS_S: Mapping[Length, float] = {"to 20 µs": 20e-6, "to 1 ms": 1e-3, "to 40 ms": 40e-3}


@dataclass(frozen=True, slots=True)
class Deviation:
    """How far one process's median lies from that of many: half widths in natural logarithms, of 95 %.

    Attributes:
        times: of the median itself.
        ratios: of what it adds to its ratio to another implementation's, of the same process and group.
    """

    times: float
    ratios: float


SHARED: Mapping[tuple[Length, Threads], Deviation] = {
    ("to 20 µs", "one"): Deviation(0.08, 0.03),
    ("to 20 µs", "many"): Deviation(0.12, 0.03),
    ("to 1 ms", "one"): Deviation(0.08, 0.03),
    ("to 1 ms", "many"): Deviation(0.14, 0.03),
    ("to 40 ms", "one"): Deviation(0.08, 0.03),
    ("to 40 ms", "many"): Deviation(0.14, 0.03),
    ("longer", "one"): Deviation(0.08, 0.03),  # assumed as for calls up to 40 ms
    ("longer", "many"): Deviation(0.14, 0.03),
}
OF_SHARED: Mapping[MachineKind, float] = {
    "shared": 1.0,
    "virtual": 0.5,
    "bare metal": 0.25,
}  # assumed but for the first
OF_GPUS = Deviation(0.04, 0.02)  # assumed: clocks under load differ by a few percent


def length_of(median_s: float) -> Length:
    """Return the class of a call that takes `median_s`."""
    return next((name for name, end_s in ENDS_S.items() if median_s <= end_s), "longer")


def prior(kind: MachineKind | None, length: Length, threads: Threads) -> Deviation:
    """Return what is assumed of a class on a kind of CPU; None is a GPU."""
    if kind is None:
        return OF_GPUS
    shared, fraction = SHARED[length, threads], OF_SHARED[kind]
    return Deviation(shared.times * fraction, shared.ratios * fraction)
