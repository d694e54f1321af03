"""The rate that a kernel's machine code allows at most on a GPU, and what limits it first.

One pass of the main loop takes a scheduler at least as many cycles as the slowest of these needs; they overlap at best:

- issue: a scheduler starts one instruction a cycle, whatever it does;
- the units of its multiply-adds, at the rate of the device's class (flop_per_clock.csv);
- the path to shared memory and the first-level cache: one request a cycle for a whole multiprocessor, however many
  banks it hits; the four matrices of an `ldmatrix` are four;
- latency: a warp issues in order and waits for what it reads (`gpuexplore.kernels.sass.dataflow`); the warps that are
  resident take turns.

Each is a floor, so the rate is an upper bound: what memory delivers, bank conflicts, barriers and edges come on top.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from gpuexplore.analysis.kernels.occupancy import Occupancy
from gpuexplore.devices import Accelerator
from gpuexplore.devices.capabilities import capability_named
from gpuexplore.devices.formula import RATE_CLASSES
from gpuexplore.kernels.sass import LoopFacts
from gpuexplore.units import format_bytes, format_bytes_per_s

Bottleneck = Literal["multiply_adds", "issue", "shared_memory", "latency", "global_memory"]
LEAST_LATENCY_S = 200e-9  # of device memory: 216 ns on an RTX 4090 to 330 ns on an A100, arXiv:2402.13499


@dataclass(frozen=True, slots=True)
class InstructionBound:
    """What machine code allows on one GPU.

    Attributes:
        flop_per_s: at most, of the whole GPU; None where nothing is computed, or the GPU's class or size is unknown.
        share_of_peak: the same over the peak of its units.
        bytes_per_s: what the loads in flight can bring at most from device memory; None where FLOPs decide.
        cycles: that one pass takes a scheduler at least, by what takes them.
        bottleneck: what takes most of them; None where nothing follows.
        evidence: the sentence that says so.
    """

    flop_per_s: float | None = None
    share_of_peak: float | None = None
    bytes_per_s: float | None = None
    cycles: Mapping[Bottleneck, float] = field(default_factory=dict, hash=False)
    bottleneck: Bottleneck | None = None
    evidence: str = ""


def instruction_bound(facts: LoopFacts, gpu: Accelerator, full: Occupancy) -> InstructionBound:
    """Return what the machine code of a kernel allows on `gpu`.

    Args:
        facts: of its main loop.
        gpu: a row of the table.
        full: the occupancy of the kernel there.
    """
    peak = gpu.rates.get(facts.unit) if facts.unit else None
    per_clock = _flop_per_clock(gpu, facts.unit) if facts.unit else None
    if not facts.is_loop or per_clock is None or peak is None or not full.active_warps:
        return _by_loads(facts, gpu, full)
    schedulers = capability_named(gpu.compute_capability).subpartitions
    warps = full.active_warps / schedulers
    cycles: dict[Bottleneck, float] = {
        "multiply_adds": facts.flops_of_a_warp / (per_clock / schedulers),
        "issue": float(facts.instructions),
        "shared_memory": float(facts.requests * schedulers),
        "latency": facts.cycles / max(1.0, warps),
    }
    slowest = max(cycles, key=lambda name: cycles[name])
    share = cycles["multiply_adds"] / cycles[slowest]
    evidence = _evidence(facts, cycles, warps)
    return InstructionBound(share * peak, share, cycles=cycles, bottleneck=slowest, evidence=evidence)


def _by_loads(facts: LoopFacts, gpu: Accelerator, full: Occupancy) -> InstructionBound:
    """Return what is known of a kernel that hardly computes: how much it asks for at a time."""
    in_flight = facts.bytes_in_flight * full.active_warps * capability_named(gpu.compute_capability).warp_size
    if not in_flight or not gpu.multiprocessors or not gpu.bandwidth_bytes_per_s:
        return InstructionBound()
    needed = gpu.bandwidth_bytes_per_s * LEAST_LATENCY_S / gpu.multiprocessors
    evidence = (
        f"Loads in flight: {facts.bytes_in_flight} B a thread, {format_bytes(in_flight)} a multiprocessor; "
        f"{format_bytes_per_s(gpu.bandwidth_bytes_per_s)} at a latency of {LEAST_LATENCY_S * 1e9:.0f} ns take "
        f"{format_bytes(needed)}, at a longer one more"
    )
    rate = min(in_flight * gpu.multiprocessors / LEAST_LATENCY_S, gpu.bandwidth_bytes_per_s)
    return InstructionBound(bytes_per_s=rate, bottleneck="global_memory", evidence=evidence)


def _flop_per_clock(gpu: Accelerator, column: str) -> float | None:
    return next((row.rate(column) for row in RATE_CLASSES if row.name == gpu.rate_class), None)


def _evidence(facts: LoopFacts, cycles: Mapping[Bottleneck, float], warps: float) -> str:
    """Return the sentence on what takes most cycles, with `warps` on each scheduler."""
    slowest = max(cycles, key=lambda name: cycles[name])
    work = facts.multiply_adds + facts.tensor
    what = "tensor-core instructions" if facts.tensor else "multiply-adds"
    if slowest == "multiply_adds":
        return f"The units of the {what} are the limit: {work} of {facts.instructions} instructions use them"
    alone = f"the {what} alone take {cycles['multiply_adds']:.0f}"
    if slowest == "issue":
        return (
            f"Instruction issue: {facts.instructions} instructions take as many cycles, {work} of them {what}; {alone}"
        )
    if slowest == "shared_memory":
        return (
            f"Shared memory and the first-level cache: {facts.requests} requests of each of the schedulers take "
            f"{cycles[slowest]:.0f} cycles for {work} {what}; {alone}"
        )
    return (
        f"Latency at this occupancy: {work} {what} take a warp at least {cycles[slowest] * warps:.0f} cycles, and "
        f"{warps:g} warps take turns on a scheduler; {alone}"
    )
