"""The rate that a kernel's machine code allows at most on a GPU, and what limits it first.

One pass of the main loop takes a scheduler at least as many cycles as the slowest of these needs; they overlap at best:

- issue: a scheduler starts one instruction a cycle, whatever it does;
- the units of its multiply-adds, at the rate of the device's class (flop_per_clock.csv);
- the path to shared memory and the first-level cache: one request a cycle for a whole multiprocessor, however many
  banks it hits; the four matrices of an `ldmatrix` are four;
- latency: a warp issues in order and waits for what it reads (`gpuexplore.kernels.sass.dataflow`); the warps that are
  resident take turns.

Nor can it be faster than the roofline: what the operation has to move between the GPU and its memory, each array once,
takes time too. Each is a floor, so the rate is an upper bound: what caches miss, bank conflicts, barriers and edges
come on top.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from gpuexplore.analysis.kernels.occupancy import Occupancy
from gpuexplore.analysis.roofline.bound import attainable_flop_per_s
from gpuexplore.devices import Accelerator
from gpuexplore.devices.capabilities import capability_named
from gpuexplore.devices.formula import RATE_CLASSES
from gpuexplore.dtypes import DTYPES
from gpuexplore.kernels.sass import LoopFacts
from gpuexplore.model import Shape
from gpuexplore.operations.contract import Operation
from gpuexplore.units import format_bytes, format_bytes_per_s, format_flop_per_s, format_intensity

Bottleneck = Literal["multiply_adds", "issue", "shared_memory", "latency", "global_memory"]
LEAST_LATENCY_S = 200e-9  # of device memory: 216 ns on an RTX 4090 to 330 ns on an A100, arXiv:2402.13499


@dataclass(frozen=True, slots=True)
class InstructionBound:
    """What machine code allows on one GPU.

    Attributes:
        flop_per_s: at most, of the whole GPU; None where its FLOPs are none or a convention, or too little is known of
            the GPU.
        share_of_peak: the same over the peak of its units.
        roofline_flop_per_s: what the peak of its units and the memory's bandwidth allow any kernel at this shape.
        bytes_per_s: what the loads in flight can bring at most from device memory; None where it is not the limit.
        cycles: that one pass takes a scheduler at least, by what takes them.
        bottleneck: what takes most of them; None where nothing follows.
        evidence: the sentence that says so.
    """

    flop_per_s: float | None = None
    share_of_peak: float | None = None
    roofline_flop_per_s: float | None = None
    bytes_per_s: float | None = None
    cycles: Mapping[Bottleneck, float] = field(default_factory=dict, hash=False)
    bottleneck: Bottleneck | None = None
    evidence: str = ""


def flop_per_byte(operation: Operation, shape: Shape, dtype: str) -> float | None:
    """Return the FLOPs for each byte that has to move; None where they are none, or a convention."""
    flops = 0 if operation.nominal_flops(shape) else operation.flop_count(shape)
    return flops / operation.byte_count(shape, DTYPES[dtype]) if flops else None


def instruction_bound(facts: LoopFacts, gpu: Accelerator, full: Occupancy, intensity: float | None) -> InstructionBound:
    """Return what the machine code of a kernel allows on `gpu`.

    Args:
        facts: of its main loop.
        gpu: a row of the table.
        full: the occupancy of the kernel there.
        intensity: of the operation at a shape, by `flop_per_byte`.
    """
    loads = _by_loads(facts, gpu, full)
    peak = gpu.rates.get(facts.unit) if facts.unit else None
    per_clock = _flop_per_clock(gpu, facts.unit) if facts.unit else None
    if intensity is None:
        return loads
    if not facts.is_loop or per_clock is None or peak is None or not full.active_warps:
        return replace(loads, flop_per_s=loads.bytes_per_s and intensity * loads.bytes_per_s)
    schedulers = capability_named(gpu.compute_capability).subpartitions
    warps = full.active_warps / schedulers
    cycles: dict[Bottleneck, float] = {
        "multiply_adds": facts.flops_of_a_warp / (per_clock / schedulers),
        "issue": float(facts.instructions),
        "shared_memory": float(facts.requests * schedulers),
        "latency": facts.cycles / max(1.0, warps),
    }
    slowest = max(cycles, key=lambda name: cycles[name])
    rate = cycles["multiply_adds"] / cycles[slowest] * peak
    roofline = attainable_flop_per_s(intensity, peak, gpu.bandwidth_bytes_per_s or math.inf)
    if gpu.bandwidth_bytes_per_s and intensity * gpu.bandwidth_bytes_per_s < rate:
        limited = intensity * (loads.bytes_per_s or gpu.bandwidth_bytes_per_s)
        evidence = _memory_evidence(intensity, rate, gpu.bandwidth_bytes_per_s, loads)
        return replace(
            loads,
            flop_per_s=limited,
            share_of_peak=limited / peak,
            roofline_flop_per_s=roofline,
            cycles=cycles,
            bottleneck="global_memory",
            evidence=evidence,
        )
    evidence = _evidence(facts, cycles, warps)
    return InstructionBound(rate, rate / peak, roofline, cycles=cycles, bottleneck=slowest, evidence=evidence)


def code_bound(facts: LoopFacts, gpu: Accelerator, full: Occupancy) -> InstructionBound:
    """Return what machine code alone allows on `gpu`: of a kernel whose operation is unknown, so no roofline follows.

    Args: as of `instruction_bound`.
    """
    computes = facts.is_loop and facts.flops_of_a_warp
    bound = instruction_bound(facts, gpu, full, math.inf if computes else None)
    known = bound.flop_per_s is not None and math.isfinite(bound.flop_per_s)
    return replace(bound, roofline_flop_per_s=None, flop_per_s=bound.flop_per_s if known else None)


def _memory_evidence(intensity: float, rate: float, bandwidth: float, loads: InstructionBound) -> str:
    """Return the sentence on an operation that memory limits before the instructions do, at `rate`, would."""
    told = (
        f"Global memory: {format_intensity(intensity)} at {format_bytes_per_s(bandwidth)} allow "
        f"{format_flop_per_s(intensity * bandwidth)}, the instructions {format_flop_per_s(rate)}"
    )
    return f"{told}. {loads.evidence}" if loads.evidence else told


def _by_loads(facts: LoopFacts, gpu: Accelerator, full: Occupancy) -> InstructionBound:
    """Return what is known of a kernel that hardly computes: how much it asks for at a time."""
    in_flight = facts.bytes_in_flight * full.active_warps * capability_named(gpu.compute_capability).warp_size
    if not in_flight or not gpu.multiprocessors or not gpu.bandwidth_bytes_per_s:
        return InstructionBound()
    needed = gpu.bandwidth_bytes_per_s * LEAST_LATENCY_S / gpu.multiprocessors
    evidence = (
        f"Loads in flight: {facts.bytes_in_flight} B per thread, {format_bytes(in_flight)} per multiprocessor; "
        f"{format_bytes_per_s(gpu.bandwidth_bytes_per_s)} need {format_bytes(needed)} at a latency of "
        f"{LEAST_LATENCY_S * 1e9:.0f} ns"
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
