"""The rate that a kernel's machine code allows at most on a GPU, and what limits it first.

One pass of the main loop takes a scheduler at least as many cycles as the slowest of these needs; they overlap at best:

- issue: a scheduler starts one instruction a cycle, whatever it does;
- tensor cores, and the units of its multiply-adds, at the rate of the device's class (flop_per_clock.csv); an addition
  or a multiplication alone takes its unit as long as a multiply-add, and is half of its FLOPs;
- special functions (MUFU: exponentials, reciprocals, sines), at 16 results a clock and multiprocessor;
- the path to shared memory and the first-level cache: one request a cycle for a whole multiprocessor, however many
  banks it hits; the four matrices of an `ldmatrix` are four, and a shuffle is one;
- latency: a warp issues in order and waits for what it reads (`gpuexplore.kernels.sass.loops`); the warps that are
  resident take turns.

Nor can it be faster than the roofline: what the operation has to move between the GPU and its memory, each array once,
takes time too. Each is a floor, so the rate is an upper bound: what caches miss, bank conflicts, barriers and edges
come on top.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from gpuexplore.analysis.occupancy import Occupancy
from gpuexplore.analysis.roofs import attainable_flop_per_s
from gpuexplore.core import Shape, format_bytes, format_bytes_per_s, format_flop_per_s, format_intensity, format_si
from gpuexplore.core.dtypes import DTYPES
from gpuexplore.hardware import RATE_CLASSES, Accelerator, capability_named
from gpuexplore.kernels.sass import LoopFacts
from gpuexplore.kernels.sass.instruction import SPARSE
from gpuexplore.operations.contract import Operation

Bottleneck = Literal[
    "tensor_cores", "multiply_adds", "special_functions", "issue", "shared_memory", "latency", "global_memory"
]
UNITS = {
    "fp64": "fp64 units",
    "fp64_tensor": "fp64 tensor cores",
    "fp32": "fp32 units",
    "fp16_vector": "fp16 units",
    "bf16_vector": "fp16 units in bf16",
    "tf32_tensor": "tf32 tensor cores",
    "fp16_tensor": "fp16 tensor cores",
    "fp16_tensor_fp16acc": "fp16 tensor cores with sums in fp16",
    "bf16_tensor": "bf16 tensor cores",
    "fp8_tensor": "fp8 tensor cores",
    "fp8_tensor_fp16acc_or_mx": "fp8 tensor cores with block scales or sums in fp16",
    "fp4_tensor": "fp4 tensor cores",
    "int8_tensor_tops": "int8 tensor cores",
    "int4_tensor": "int4 tensor cores",
    "binary_tensor": "tensor cores for single bits",
}
# Where a row has no rate of its own: the same units do it at the same rate, or, for DMMA, the ordinary fp64 units,
# https://images.nvidia.com/aem-dam/en-zz/Solutions/geforce/ampere/pdf/NVIDIA-ampere-GA102-GPU-Architecture-Whitepaper-V1.pdf
EXECUTED_BY = {
    "fp16_tensor_fp16acc": "fp16_tensor",
    "fp8_tensor_fp16acc_or_mx": "fp8_tensor",
    "fp64_tensor": "fp64",
    "bf16_vector": "fp16_vector",
}
# Shares of a class's rate. That of fp8 is of block-scaled products; plain ones with sums in fp32 run at half of it:
# flop_per_clock.csv. An A100 does 39 TFLOP/s in bf16 without tensor cores and 78 in fp16, an H100 133.8 in both:
# https://resources.nvidia.com/en-us-tensor-core/gtc22-whitepaper-hopper, its table that compares the two.
SLOWER = {
    ("blackwell-gb20x-geforce", "fp8_tensor"): (0.5, "without block scales (at 0.5 of the peak with them)"),
    ("ampere-ga100", "bf16_vector"): (0.5, "in bf16, at half of their rate in fp16"),
}
# Results a clock and multiprocessor, https://docs.nvidia.com/cuda/cuda-c-programming-guide/#arithmetic-instructions;
# Blackwell Ultra does twice as many, 10.7e12 exponentials a second where a B200 does 5e12:
# https://developer.nvidia.com/blog/inside-nvidia-blackwell-ultra-the-chip-powering-the-ai-factory-era/


@dataclass(frozen=True, slots=True)
class InstructionBound:
    """The upper bound that machine code sets on one GPU.

    Attributes:
        flop_per_s: at most, of the whole GPU; None where its FLOPs are none or a convention, or too little is known of
            the GPU. Of code that uses tensor cores it is their rate; where two of four values are zeros that are left
            out, they count.
        share_of_peak: the same over the peak of its units.
        roofline_flop_per_s: what the peak of its units and the memory's bandwidth allow any kernel at this shape.
        bytes_per_s: what the loads in flight can bring at most from device memory; None where it is not the limit.
        cycles: that one pass takes a scheduler at least, by what takes them.
        bottleneck: what takes most of them; None where nothing follows.
        evidence: the sentence that says so.
        units: what computes, in words, e.g. `fp8 tensor cores`.
        rate_unit: of `flop_per_s`: OP/s where integers are multiplied.
        no_rate: why its arithmetic allows no rate; empty where it does.
    """

    flop_per_s: float | None = None
    share_of_peak: float | None = None
    roofline_flop_per_s: float | None = None
    bytes_per_s: float | None = None
    cycles: Mapping[Bottleneck, float] = field(default_factory=dict, hash=False)
    bottleneck: Bottleneck | None = None
    evidence: str = ""
    units: str = ""
    rate_unit: str = "FLOP/s"
    no_rate: str = ""


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
    if intensity is None:
        return loads
    computing = [unit for unit in facts.flops if _is_tensor(unit)] or list(facts.flops)
    words = " and ".join(_words(gpu, unit) for unit in computing)
    if not computing:
        where = "its main loop" if facts.is_loop else "it"
        called = ", but calls a subroutine, whose instructions are not counted" if facts.calls else ""
        why = f"{where} does no floating-point arithmetic and no products on tensor cores{called}"
        return replace(loads, no_rate=why)
    times = {}
    for unit in computing:
        column, factor = _executed(gpu, unit)
        if peak_of_unit := gpu.rates.get(column):
            times[unit] = facts.capacity[unit] / (factor * peak_of_unit)
    if len(times) < len(computing):
        return replace(loads, no_rate=f"the table has no peak of {words} for {gpu.name}")
    _, seconds = _busiest(times)
    peak = sum(facts.capacity[unit] for unit in computing) / seconds
    reached = sum(facts.flops[unit] for unit in computing) / seconds
    is_integer = {unit.removesuffix(SPARSE) for unit in computing} <= {
        "int8_tensor_tops",
        "int4_tensor",
        "binary_tensor",
    }
    rate_unit = "OP/s" if is_integer else "FLOP/s"
    cycles = _cycles(facts, gpu, full)
    if not cycles:
        why = f"the time of {'a pass' if facts.is_loop else 'code without a loop'} is unknown"
        if facts.tensor:
            evidence = f"The {words} are no faster than their peak; {why}"
            alone = InstructionBound(peak, 1.0, units=words, rate_unit=rate_unit)
            return replace(alone, bottleneck="tensor_cores", evidence=evidence)
        return replace(loads, flop_per_s=loads.bytes_per_s and intensity * loads.bytes_per_s, no_rate=why)
    work: Bottleneck = "tensor_cores" if "tensor_cores" in cycles else "multiply_adds"
    slowest = max(cycles, key=lambda name: cycles[name])
    rate = cycles[work] / cycles[slowest] * reached
    roofline = attainable_flop_per_s(intensity, peak, gpu.bandwidth_bytes_per_s or math.inf)
    if gpu.bandwidth_bytes_per_s and intensity * gpu.bandwidth_bytes_per_s < rate:
        rate = intensity * (loads.bytes_per_s or gpu.bandwidth_bytes_per_s)
        slowest = "global_memory"
        by_memory = format_flop_per_s(intensity * gpu.bandwidth_bytes_per_s)
        evidence = (
            f"Global memory: {format_intensity(intensity)} at {format_bytes_per_s(gpu.bandwidth_bytes_per_s)} allow "
            f"{by_memory}, the instructions {format_flop_per_s(cycles[work] / max(cycles.values()) * reached)}"
        ) + (f". {loads.evidence}" if loads.evidence else "")
    else:
        loads = InstructionBound()
        evidence = _evidence(facts, cycles, full, gpu)
        evidence += ". It calls a subroutine, whose instructions are not counted" if facts.calls else ""
    return replace(
        loads,
        flop_per_s=rate,
        share_of_peak=rate / peak,
        roofline_flop_per_s=roofline,
        cycles=cycles,
        bottleneck=slowest,
        evidence=evidence,
        units=words,
        rate_unit=rate_unit,
    )


def _executed(gpu: Accelerator, unit: str) -> tuple[str, float]:
    """Return the column of the table that has a unit's rate, and the multiple of that rate."""
    dense = column = unit.removesuffix(SPARSE)
    if dense not in gpu.rates and EXECUTED_BY.get(dense) in gpu.rates:
        column = EXECUTED_BY[dense]
    factor, _ = SLOWER.get((gpu.rate_class, dense), (1.0, ""))
    return column, factor if dense == unit else 2 * factor


def _words(gpu: Accelerator, unit: str) -> str:
    """Return what readers call a unit of a GPU."""
    dense = unit.removesuffix(SPARSE)
    column, _ = _executed(gpu, unit)
    words = UNITS[column] + (" (it has no fp64 tensor cores)" if column != dense and column == "fp64" else "")
    _, why = SLOWER.get((gpu.rate_class, dense), (1.0, ""))
    words = f"{words} {why}".rstrip()
    return words if dense == unit else f"{words} with 2:4 sparsity (twice the dense rate, for its zeros count)"


def _is_tensor(unit: str) -> bool:
    return "_tensor" in unit


def _busiest(times: Mapping[str, float]) -> tuple[str, float]:
    """Return which of the units that work at the same time takes longest, and how long; all tensor cores are one."""
    sums: dict[str, float] = {}
    for unit, time in times.items():
        name = "tensor_cores" if _is_tensor(unit) else EXECUTED_BY.get(unit, unit)
        sums[name] = sums.get(name, 0.0) + time
    return max(sums.items(), key=lambda item: item[1])


def _cycles(facts: LoopFacts, gpu: Accelerator, full: Occupancy) -> dict[Bottleneck, float]:
    """Return what one pass takes a scheduler at least; nothing where there is no loop, or a rate is unknown."""
    capability = capability_named(gpu.compute_capability)
    times = _unit_cycles(facts, gpu, capability.subpartitions)
    if any(unit not in times for unit in facts.flops if _is_tensor(unit) or not facts.tensor):
        return {}
    if not facts.is_loop or not full.active_warps:
        return {}
    cycles: dict[Bottleneck, float] = {}
    if on_tensor_cores := {unit: time for unit, time in times.items() if _is_tensor(unit)}:
        cycles["tensor_cores"] = _busiest(on_tensor_cores)[1]
    if ordinary := {unit: time for unit, time in times.items() if not _is_tensor(unit)}:
        cycles["multiply_adds"] = _busiest(ordinary)[1]
    if facts.special:
        results = {"10.3": 32}.get(gpu.compute_capability or "", 16)
        cycles["special_functions"] = facts.special * capability.warp_size * capability.subpartitions / results
    return cycles | {
        "issue": float(facts.instructions),
        "shared_memory": float(facts.requests * capability.subpartitions),
        "latency": facts.cycles / max(1.0, full.active_warps / capability.subpartitions),
    }


def _unit_cycles(facts: LoopFacts, gpu: Accelerator, subpartitions: int) -> dict[str, float]:
    """Return how long each unit of a scheduler takes for one pass; without those whose rate is unknown."""
    rates = next((row for row in RATE_CLASSES if row.name == gpu.rate_class), None)
    times = {}
    for unit in facts.flops:
        column, factor = _executed(gpu, unit)
        if rates and (per_clock := rates.rate(column)):
            times[unit] = facts.capacity[unit] * subpartitions / (factor * per_clock)
    return times


def _by_loads(facts: LoopFacts, gpu: Accelerator, full: Occupancy) -> InstructionBound:
    """Return what is known of a kernel that hardly computes: how much it asks for at a time."""
    in_flight = facts.bytes_in_flight * full.active_warps * capability_named(gpu.compute_capability).warp_size
    if not in_flight or not gpu.multiprocessors or not gpu.bandwidth_bytes_per_s:
        return InstructionBound()
    latency_s = 200e-9  # of device memory at least: 216 ns on an RTX 4090 to 330 ns on an A100, arXiv:2402.13499
    needed = gpu.bandwidth_bytes_per_s * latency_s / gpu.multiprocessors
    evidence = (
        f"Loads in flight: {facts.bytes_in_flight} B per thread, {format_bytes(in_flight)} per multiprocessor; "
        f"{format_bytes_per_s(gpu.bandwidth_bytes_per_s)} need {format_bytes(needed)} at a latency of "
        f"{latency_s * 1e9:.0f} ns"
    )
    rate = min(in_flight * gpu.multiprocessors / latency_s, gpu.bandwidth_bytes_per_s)
    return InstructionBound(bytes_per_s=rate, bottleneck="global_memory", evidence=evidence)


def _evidence(facts: LoopFacts, cycles: Mapping[Bottleneck, float], full: Occupancy, gpu: Accelerator) -> str:
    """Return the sentence on what takes most cycles."""
    slowest = max(cycles, key=lambda name: cycles[name])
    taken = f"{cycles[slowest]:.0f} cycles"
    is_tensor = "tensor_cores" in cycles
    subpartitions = capability_named(full.compute_capability).subpartitions
    times = {u: time for u, time in _unit_cycles(facts, gpu, subpartitions).items() if _is_tensor(u) == is_tensor}
    ordinary = sum(count for unit, count in facts.users.items() if not _is_tensor(unit))
    work = facts.tensor if is_tensor else ordinary
    apart = "multiply-adds" if ordinary == facts.multiply_adds else "floating-point instructions"
    what = "tensor-core instructions" if is_tensor else apart
    alone = f"the {what} alone take {cycles['tensor_cores' if is_tensor else 'multiply_adds']:.0f}"
    format_too = ", and fp16, twice as fast as tf32" if "fp16_tensor" in facts.flops else ""
    open_tiles = f". The tile of {facts.open_tiles} is known at launch only: the largest counts{format_too}"
    largest = open_tiles if facts.open_tiles else ""
    if slowest == "tensor_cores":
        others = f"; the {ordinary} {apart} do not" if ordinary else ""
        said = f"{work} of {facts.instructions} instructions use them{others}"
        return f"The {' and '.join(_words(gpu, unit) for unit in times)} are the limit: {said}{largest}"
    if slowest == "multiply_adds":
        return _units_evidence(facts, gpu, subpartitions) + (f"; {alone} of their {taken}" if is_tensor else "")
    if slowest == "special_functions":
        named = f"{facts.special} instructions (MUFU: exponentials, reciprocals and their like)"
        return f"The special-function units are the limit: {named} take {taken} for {work} {what}; {alone}{largest}"
    if slowest == "issue":
        said = f"Instruction issue: {facts.instructions} instructions take as many cycles, {work} of them {what}"
    elif slowest == "shared_memory":
        said = (
            f"Shared memory and the first-level cache: {facts.requests} requests of each of the schedulers take "
            f"{taken} for {work} {what}"
        )
    else:
        warps = full.active_warps / subpartitions
        said = (
            f"Latency at this occupancy: {work} {what} take a warp at least {cycles[slowest] * warps:.0f} cycles, and "
            f"{warps:g} warps take turns on a scheduler"
        )
    return f"{said}; {alone}{largest}"


def _units_evidence(facts: LoopFacts, gpu: Accelerator, subpartitions: int) -> str:
    """Return the sentence on the ordinary units that take longest."""
    times = _unit_cycles(facts, gpu, subpartitions)
    busiest, _ = _busiest({unit: time for unit, time in times.items() if not _is_tensor(unit)})
    units = [unit for unit in times if EXECUTED_BY.get(unit, unit) == busiest]
    users, flops, capacity = (sum(of[unit] for unit in units) for of in (facts.users, facts.flops, facts.capacity))
    words = " and ".join(_words(gpu, unit) for unit in units)
    share = "all" if 2 * flops == capacity else "some"
    half = f", {share} to add or to multiply alone, which is half the FLOPs of a multiply-add in the same time"
    said = f"{users} of {facts.instructions} instructions use them{half if flops < capacity else ''}"
    return f"The {words} are the limit: {said}"


def format_rate(bound: InstructionBound) -> str:
    """Return the rate of a bound with its unit: operations where integers are multiplied."""
    return format_si(bound.flop_per_s, bound.rate_unit)
