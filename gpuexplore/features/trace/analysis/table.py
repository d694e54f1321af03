"""A trace as a table: one row for the calls of an operation with equal shapes and dtype, next to its device's roofs.

A trace names its GPUs. It names no CPU: a roof of this machine's is used where the user says that it was taken here.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from gpuexplore.analysis.utilization.utilization import cached_bytes, smallest_cache
from gpuexplore.core import Device, InvalidInput, Peak, PeakKind, require
from gpuexplore.features.trace.analysis.attribution import Parents, attribute, busy_ns, nest
from gpuexplore.features.trace.analysis.call_kinds import MULTIPLIES, kind_of
from gpuexplore.features.trace.analysis.counterpart import Counterpart, counterpart
from gpuexplore.features.trace.analysis.events import Call, Kernel, ProfilerTrace, read_trace
from gpuexplore.features.trace.analysis.flops import flop_count, may_be_masked
from gpuexplore.features.trace.analysis.moved_bytes import byte_count
from gpuexplore.hardware import Accelerator, as_device, gpu_named, readings
from gpuexplore.hardware.variants import choose

CPU = "cpu"


@dataclass(frozen=True, slots=True)
class _TracedOn:
    """The device that a trace was taken on.

    Attributes:
        name: of the device, as the trace or the user says; None where neither does.
        device: with its peaks; None where they are unknown.
        source: who says that it was this device, or why its roof is unknown.
    """

    name: str | None
    device: Device | None
    source: str


@dataclass(frozen=True, slots=True)
class _LeastTime:
    """The least time that a device needs for some work, by what bounds it."""

    time_s: float
    bound: Literal["compute", "memory", "cache"]


def traced_on(trace: ProfilerTrace, *, gpu: str = "", device: str = "", here: Iterable[Device] = ()) -> _TracedOn:
    """Return the device of a trace.

    Args:
        trace: what was read.
        gpu: the GPU it was taken on by a name of `specs`, where the trace does not say or the user knows better.
        device: `cpu`, where the trace was taken on this machine's CPU.
        here: this machine's devices, the CPU with its peaks.

    Raises:
        InvalidInput: no such device, or none that such a trace can be of.
    """
    require(device in ("", CPU), "device", device, f"{CPU}, for a trace taken on this machine; use --gpu for a GPU")
    if trace.kernels:
        if device:
            raise InvalidInput("device cpu: this trace has GPU kernels; expected --gpu with the GPU's name")
        if not gpu.strip():
            return _in_trace(trace)
        row = gpu_named(gpu)
        return _TracedOn(row.name, _as_device(row), "; ".join(("as chosen", *readings([gpu]))))
    if gpu.strip():
        raise InvalidInput(f"gpu {gpu[:60]!r}: this trace has no GPU kernels; expected --device cpu")
    if not device:
        return _TracedOn(
            None, None, "a trace does not name its CPU, so no roof is known unless it was taken on this machine"
        )
    cpu = next((each for each in here if each.kind == CPU), None)
    if cpu is None:
        return _TracedOn(None, None, "no CPU of this machine is known")
    if not cpu.peaks:
        return _TracedOn(cpu.title, cpu, "this machine's CPU, whose peaks are not measured yet")
    return _TracedOn(cpu.title, cpu, "this machine's CPU with all cores, as chosen")


def _in_trace(trace: ProfilerTrace) -> _TracedOn:
    names = tuple(dict.fromkeys(gpu.name for _, gpu in trace.gpus))
    if not names:
        return _TracedOn(None, None, "the trace does not name its GPU, so no roof is known unless it is chosen")
    if len(names) > 1:
        return _TracedOn(" and ".join(names), None, "different GPUs in one trace have no common roof")
    number, gpu = trace.gpus[0]
    row, doubt = choose(gpu)
    if row is None:
        return _TracedOn(gpu.name, None, f"{doubt}, so no roof is known unless it is chosen")
    is_numbered = any(kernel.device in (None, number) for kernel in trace.kernels)
    said = (
        "as the trace states" if is_numbered else "as the trace states, although its kernels have another device number"
    )
    return _TracedOn(row.name, _as_device(row), "; ".join(filter(None, (said, doubt))))


def _as_device(row: Accelerator) -> Device:
    """Return a row as a device, with its peak of products of fp4, which is traced and not measured."""
    device = as_device(row)
    column = "fp4_tensor"  # of products of block-scaled numbers
    rate = row.rates.get(column)
    if rate is None:
        return device
    kind: PeakKind = "formula" if column in row.derived else "datasheet"
    return replace(device, peaks=(*device.peaks, Peak("fp4", "matrix", rate, kind, row.source_url)))


def _arithmetic(dtype: str | None, kernels: Sequence[Kernel]) -> str | None:
    """Return the dtype that products of `dtype` are computed in: names of kernels show where it is TF32 for fp32."""
    names = [kernel.name.casefold() for kernel in kernels]
    marks = ("tf32", "tensorop_s1688gemm", "tensorop_c1688gemm")  # in names of kernels of cuBLAS and CUTLASS
    return "tf32" if dtype == "fp32" and any(mark in name for name in names for mark in marks) else dtype


def _least_time(
    device: Device | None, dtype: str | None, flop_count: int | None, byte_count: int | None
) -> _LeastTime | None:
    """Return the least time of a call; None where a roof that could decide it is unknown.

    Products of unknown bytes, or of bytes that come from a cache of unknown bandwidth, may be bound by either: the
    latter are by arithmetic where they would be with the memory's bandwidth.

    Args:
        device: where it ran.
        dtype: of its products.
        flop_count: of its products; None where it has none.
        byte_count: that it moves at least; None is unknown.
    """
    if device is None:
        return None
    moving = _moving(device, byte_count)
    if flop_count is None:
        return moving
    peak = device.peak(dtype, "matrix") if dtype else None
    if peak is None or not byte_count:
        return None
    computing = _LeastTime(flop_count / peak.flop_per_s, "compute")
    if moving is None:  # no cache delivers slower than the memory behind it
        by_memory = _by_memory(device, byte_count)
        return computing if by_memory and by_memory.time_s <= computing.time_s else None
    return moving if moving.time_s > computing.time_s else computing


def _moving(device: Device, byte_count: int | None) -> _LeastTime | None:
    """Return the least time of moving so many bytes; what fits a cache is not bounded by memory."""
    if not byte_count:
        return None
    if byte_count <= (cached_bytes(device) or 0):
        cache = smallest_cache(device.caches, byte_count)
        return _LeastTime(byte_count / cache.bandwidth.bytes_per_s, "cache") if cache else None
    return _by_memory(device, byte_count)


def _by_memory(device: Device, byte_count: int) -> _LeastTime | None:
    memory = device.bandwidth
    return _LeastTime(byte_count / memory.bytes_per_s, "memory") if memory else None


class _Work(NamedTuple):
    """FLOPs and bytes of one call; None where it has none, they are unknown, or they are those of another call."""

    flop_count: int | None
    byte_count: int | None


UNKNOWN = _Work(None, None)


def _counted_once(calls: Sequence[Call], parents: Parents, own_ns: Sequence[int]) -> list[_Work]:
    """Return the work of each call.

    An operation whose work is known again within it counts nothing itself. Products of one whose time went to calls of
    its kind within it, of which no work is known, are theirs: in equal parts where they are alike, else unknown.

    Args:
        calls: of the trace.
        parents: which of them each was made within.
        own_ns: the time that each took itself, without that of calls within.
    """
    known = [_Work(flop_count(call), byte_count(call)) for call in calls]
    within = _known_within(calls, parents, known)
    found = []
    for call, work, marks in zip(calls, known, within, strict=True):
        found.append(UNKNOWN if ("FLOPs" if work.flop_count is not None else kind_of(call.name)) in marks else work)
    heirs: dict[int, list[int]] = defaultdict(list)
    for index, parent in enumerate(parents):
        if parent is not None and found[index] == UNKNOWN and kind_of(calls[index].name) == kind_of(calls[parent].name):
            heirs[parent].append(index)
    from_outside = sorted(range(len(calls)), key=lambda index: (calls[index].start_ns, -calls[index].end_ns))
    time_ns = list(own_ns)
    for index in reversed(from_outside):
        parent = parents[index]
        if parent is not None:
            time_ns[parent] += time_ns[index]
    for index in from_outside:
        if found[index].flop_count is not None and own_ns[index] < sum(time_ns[heir] for heir in heirs[index]):
            # a part for each of the calls that the work is left to, where they are alike
            alike = {(calls[heir].name, *(each.dims for each in calls[heir].arguments or ())) for heir in heirs[index]}
            parts = [each and each // len(heirs[index]) for each in found[index]]
            for heir in heirs[index]:
                found[heir] = _Work(*parts) if len(alike) == 1 else UNKNOWN
            found[index] = UNKNOWN
    return found


def _known_within(calls: Sequence[Call], parents: Parents, known: Sequence[_Work]) -> list[set[str]]:
    """Return the kinds of the calls within each whose work is known, and whether FLOPs are."""
    within: list[set[str]] = [set() for _ in calls]
    for index, work in enumerate(known):
        marks = {"FLOPs"} if work.flop_count is not None else set()
        marks |= {kind} if work.byte_count is not None and (kind := kind_of(calls[index].name)) else set()
        parent = parents[index]
        while parent is not None and not marks <= within[parent]:  # else those around it have them, too
            within[parent] |= marks
            parent = parents[parent]
    return within


Dims = tuple[int, ...]
DTYPES: Mapping[str, str] = {  # our names of torch's types
    **{"double": "fp64", "float": "fp32", "c10::BFloat16": "bf16", "c10::Half": "fp16"},
    **{f"c10::Float8_{form}": "fp8" for form in ("e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz")},
    "c10::Float4_e2m1fn_x2": "fp4",
}
PARTS: Mapping[str, str] = {  # of complex numbers
    "c10::complex<float>": "fp32",
    "c10::complex<double>": "fp64",
}
NS = 1e-9


@dataclass(frozen=True, slots=True)
class TraceRow:
    """The calls of an operation that are alike; or the kernels of one name that no operation of torch launched.

    Attributes:
        operation: torch's name, or that of the kernels.
        kind: that the headline sums it up under; None: it is of none.
        shapes: of its tensors; None where arguments were not recorded.
        dtypes: of its tensors, each once.
        self_cpu_s: time on the host, without that of calls within, of all calls together.
        gpu_s: time of the work it launched on a GPU; None in a trace without a GPU.
        time_s: the one of both that the trace is about: the GPU's, where it has one.
        share: of the time of the whole trace.
        flop_count: of one call; None where it has none, or they are unknown.
        byte_count: that one call moves at least.
        least: the least time of one call on the device.
        counterpart: which of our operations computes the same.
        may_be_masked: of its pairs of queries and keys, fewer may count than its FLOPs say.
    """

    operation: str
    kind: str | None
    shapes: tuple[Dims, ...] | None
    dtypes: tuple[str, ...]
    calls: int = 0
    self_cpu_s: float = 0.0
    gpu_s: float | None = None
    share: float | None = None
    flop_count: int | None = None
    byte_count: int | None = None
    least: _LeastTime | None = None
    counterpart: Counterpart | None = None
    may_be_masked: bool = False

    @property
    def time_s(self) -> float:
        """The time of the GPU where the trace has one, else of the host."""
        return self.self_cpu_s if self.gpu_s is None else self.gpu_s

    @property
    def roof_share(self) -> float | None:
        """The fraction of the roof that was reached: the least time of the calls over theirs."""
        return self.calls * self.least.time_s / self.time_s if self.least and self.time_s else None

    @property
    def flop_per_s(self) -> float | None:
        """FLOP/s of its calls."""
        return self.calls * self.flop_count / self.time_s if self.flop_count and self.time_s else None

    @property
    def bytes_per_s(self) -> float | None:
        """Bytes/s of its calls at least."""
        return self.calls * self.byte_count / self.time_s if self.byte_count and self.time_s else None


@dataclass(frozen=True, slots=True)
class TraceTable:
    """The table of a trace.

    Attributes:
        name: of its file.
        rows: the one that took longest first.
        total_s: time of all rows: of the GPU's work where there is any, else of the host.
        self_cpu_s: time of the host.
        busy_s: how long at least one kernel ran; None in a trace without a GPU.
        span_s: from the start of the first event to the end of the last.
        has_shapes: whether arguments were recorded.
        left_out: events without a name or a time.
        contradicted: kernels that end long after the next one on their stream began, which count until then.
        contradicted_s: the time that does not count.
        processes: that operations of torch were called in.
    """

    name: str
    on: _TracedOn
    rows: tuple[TraceRow, ...]
    total_s: float
    self_cpu_s: float
    busy_s: float | None
    span_s: float
    has_shapes: bool
    left_out: int
    contradicted: int
    contradicted_s: float
    processes: int


def read_table(
    name: str, content: bytes, most_bytes: int, taken_on: str | Sequence[Device] = ""
) -> tuple[TraceTable, bool]:
    """Return the table of a trace, and whether anything ran on a GPU.

    Args:
        name: of the file.
        content: of it.
        most_bytes: that it may have unpacked.
        taken_on: a key of the table of accelerators, or this machine's devices, whose CPU is meant; empty: what the
            trace says.

    Raises:
        InvalidInput: it is no trace, or was taken on another kind of device.
    """
    trace = read_trace(name, content, most_bytes)
    on = traced_on(trace, gpu=taken_on) if isinstance(taken_on, str) else traced_on(trace, device=CPU, here=taken_on)
    return table_of(trace, on), bool(trace.kernels)


def table_of(trace: ProfilerTrace, on: _TracedOn) -> TraceTable:
    """Return the table of a trace that was taken on `on`."""
    parents, self_ns = nest(trace.calls)
    launched, lost_ns = attribute(trace, parents)
    kernels = [kernel for each in launched.values() for kernel in each]
    self_cpu_s = sum(self_ns) * NS
    total_s = _time_ns(kernels) * NS if kernels else self_cpu_s
    own_ns = [_time_ns(launched.get(index, ())) for index in range(len(trace.calls))] if kernels else self_ns
    work = _counted_once(trace.calls, parents, own_ns)
    groups: dict[tuple[TraceRow, str | None], list[int]] = defaultdict(list)
    for index, (call, counted) in enumerate(zip(trace.calls, work, strict=True)):
        groups[_alike(call, launched.get(index, ()), counted)].append(index)
    rows = []
    for (row, computes_in), indices in groups.items():
        of_row = [kernel for index in indices for kernel in launched.get(index, ())]
        spent_s = sum(self_ns[index] for index in indices) * NS
        gpu_s = _time_ns(of_row) * NS if kernels else None
        is_unknown = row.kind in MULTIPLIES and row.flop_count is None  # bytes alone are no roof of a product
        least = None if is_unknown else _least_time(on.device, computes_in, row.flop_count, row.byte_count)
        rows.append(replace(row, calls=len(indices), self_cpu_s=spent_s, gpu_s=gpu_s, least=least))
    rows += [
        TraceRow(name, kind_of(name), None, (), len(own), gpu_s=_time_ns(own) * NS)
        for name, own in launched.items()
        if isinstance(name, str)
    ]
    rows.sort(key=lambda row: (-row.time_s, -row.self_cpu_s))
    events: list[Call | Kernel] = [*trace.calls, *kernels]
    return TraceTable(
        name=trace.name,
        on=on,
        rows=tuple(replace(row, share=row.time_s / total_s) for row in rows) if total_s else tuple(rows),
        total_s=total_s,
        self_cpu_s=self_cpu_s,
        busy_s=busy_ns(kernels) * NS if kernels else None,
        span_s=(max(each.end_ns for each in events) - min(each.start_ns for each in events)) * NS,
        has_shapes=trace.has_shapes,
        left_out=trace.left_out,
        contradicted=sum(map(bool, lost_ns)),
        contradicted_s=sum(lost_ns) * NS,
        processes=len({call.process for call in trace.calls if call.category == "cpu_op"}),
    )


def _time_ns(kernels: Sequence[Kernel]) -> int:
    return sum(kernel.time_ns for kernel in kernels)


def _alike(call: Call, kernels: Sequence[Kernel], counted: _Work) -> tuple[TraceRow, str | None]:
    """Return what is equal for all calls of a row, times aside, and the dtype that its products are computed in."""
    tensors = [argument for argument in call.arguments or () if argument.dims is not None]
    dtypes = tuple(dict.fromkeys(DTYPES.get(argument.kind, argument.kind) for argument in tensors))
    multiplied = next((dtype for dtype in dtypes if dtype not in ("int", "long int")), None)  # those are lengths
    kind = kind_of(call.name)
    computes_in = _arithmetic(PARTS.get(multiplied or "", multiplied), kernels) if (kind in MULTIPLIES) else None
    of_ours = None if multiplied in PARTS else computes_in or (dtypes[0] if len(dtypes) == 1 else None)
    over_a_link = re.compile("HtoD|DtoH|PtoP|HostToDevice|DeviceToHost")  # in names of copies
    crosses = bool(kernels) and all(over_a_link.search(kernel.name) for kernel in kernels)
    has_work = counted != UNKNOWN
    row = TraceRow(
        operation=call.name,
        kind=kind,
        shapes=None if call.arguments is None else tuple(argument.dims or () for argument in tensors),
        dtypes=dtypes,
        flop_count=counted.flop_count,
        byte_count=None if crosses else counted.byte_count,
        counterpart=counterpart(call, of_ours) if has_work else None,
        may_be_masked=has_work and may_be_masked(call),
    )
    return row, computes_in
