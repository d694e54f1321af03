"""One implementation on one case, built and ready to run: the callable of the timing loop.

Calls without timing wake it, until a pause before them does not show in the next one any more. After a pause threads
sleep, caches hold the data of others and the clock of a core rises for milliseconds: torch's addition of 10^5 numbers
took 1.6 times as long after 0.2 ms of such calls as in a loop, 1.15 times after 4 ms (benchmarks/README.md). So calls
go on until a millisecond of them is no faster than the one before.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from math import ceil
from typing import Any

import numpy as np

from gpuexplore.backends import Backend, Call, Clock, Timer, load_backend
from gpuexplore.backends.host import aligned
from gpuexplore.core import Accuracy, CacheState, Case, Device, PhaseName, Shape, Unsupported
from gpuexplore.core.dtypes import DTYPES, DType, Stored, dtype_named
from gpuexplore.hardware import GPU_KINDS, is_cut_into_instances
from gpuexplore.measure.arrays.large import DrawnInput, is_large
from gpuexplore.operations import Implementation, Operation, Phased, load_build

WINDOW_S = 1e-3  # window of calls that is compared with the previous window
LEAST_S = 3e-3
MOST_S = 10e-3
BRIEFLY_S = 200e-6
WAKING_CALL_S = 40e-3  # waking threads, 2 ms, does not show in calls of this length

ASSUMED_FLUSH_BYTES = 256 * 2**20  # where the cache is unknown: twice the largest L2 of a GPU, 126 MB on a B200

Inputs = tuple[Any, ...]  # `Stored` on the host, or `DrawnInput`, generated on the device


@dataclass(frozen=True, slots=True)
class Candidate:
    """A `run` with its output, its timer and its flush; `run` alone is what is timed.

    Attributes:
        device: where it runs, with all that its library's driver knows of it.
        phases: parts of `run` that can be called on their own.
        inputs: the arrays that `run` reads, in their order in memory.
        accepted: outputs that were right, by the identity of their reference, which is kept so that no other has it.
        threads: of a CPU that it computes on.
        by_columns: by input, whether it is stored column-major, so that its last two axes are exchanged in `inputs`.
        stays_on_device: whether inputs and output are too large for the host, so that they are made and checked there.
    """

    case: Case
    device: Device
    backend: Backend
    dtype: DType
    run: Call
    out: Any
    timer: Timer
    flush: Call | None
    phases: Mapping[PhaseName, Call] = field(default_factory=dict)
    inputs: tuple[Any, ...] = ()
    accepted: dict[int, tuple[object, Stored, Accuracy]] = field(default_factory=dict)
    threads: int = 1
    by_columns: tuple[bool, ...] = ()
    stays_on_device: bool = False

    def first_call_s(self, clock: Clock) -> float:
        """Return seconds of one call until the device is done."""
        start = clock()
        self.run()
        self.backend.synchronize(self.case.device)
        return (clock() - start) * 1e-9

    def poison(self) -> None:
        """Fill the output with NaN."""
        if self.stays_on_device:
            device_arrays().poison(self.out, self.dtype)
        else:
            self.backend.poison(self.out)
        self.backend.synchronize(self.case.device)

    def is_poisoned(self) -> bool:
        """Return whether the output holds nothing but NaN."""
        if self.stays_on_device:
            return bool(device_arrays().is_poisoned(self.out, self.dtype))
        return bool(np.isnan(self.output()).all())

    def load(self, values: Inputs) -> None:
        """Overwrite the inputs with `values`: what was built on them computes with others from now on."""
        for array, wanted, transposed in zip(self.inputs, values, self.by_columns, strict=True):
            if isinstance(wanted, DrawnInput):
                device_arrays().fill(array, wanted, transposed)
            else:
                self.backend.load(array, _in_memory_order(wanted, transposed))
        self.backend.synchronize(self.case.device)

    def holds(self, values: Inputs) -> bool:
        """Return whether the inputs still hold `values`, bit by bit."""
        return all(
            device_arrays().holds(array, wanted, transposed)
            if isinstance(wanted, DrawnInput)
            else np.array_equal(
                bits(self.backend.stored(array, self.dtype)), bits(_in_memory_order(wanted, transposed))
            )
            for array, wanted, transposed in zip(self.inputs, values, self.by_columns, strict=True)
        )

    def output(self) -> np.typing.NDArray[np.float64]:
        """Return the output as float64 on the host."""
        return self.dtype.widen(self.stored())

    def stored(self) -> Stored:
        """Return the output as it is stored, on the host; the next call may overwrite it."""
        return self.backend.stored(self.out, self.dtype)


def bits(array: Stored) -> np.typing.NDArray[np.unsignedinteger[Any]]:
    """Return a view of `array` by which equal means the same bits, of NaN and zero too."""
    return array.view(f"uint{8 * array.dtype.itemsize}")


def build_candidate(case: Case, operation: Operation, device: Device, *, inputs: Inputs, clock: Clock) -> Candidate:
    """Return `case` built on `device`: inputs copied, output allocated, nothing run yet.

    Raises:
        Unsupported: the implementation, its library or the dtype does not exist on this device, or its library
            would use another one.
    """
    with aligned(case.options.align):
        return _built(case, operation, device, inputs=inputs, clock=clock)


def _built(case: Case, operation: Operation, device: Device, *, inputs: Inputs, clock: Clock) -> Candidate:
    dtype = dtype_named(case.dtype)
    implementation = operation.implementation_named(case.implementation)
    backend = load_backend(implementation.backend)
    layout = case.options.layout
    flags = operation.flags_of(case.shape)
    lacks = implementation.lacks_layout(layout) or implementation.lacks_flags(flags)
    if reason := unsupported(operation, implementation, dtype, device) or lacks:
        raise Unsupported(reason)
    device = device_for(backend, device)
    threads = case.options.threads or device.cores or 1
    if device.kind == "cpu":  # the cores of a GPU are not threads of the host's libraries
        backend.set_threads(threads)
    if operation.uses_one_thread(case.implementation, case.dtype, case.shape):
        threads = 1
    build = load_build(operation, implementation)
    out = backend.empty(operation.output(case.shape), dtype, case.device)
    chosen: dict[str, Any] = dict.fromkeys(flags, True) | ({"block": case.options.block} if case.options.block else {})
    by_columns = tuple(layout[index : index + 1] == "T" for index in range(len(inputs)))
    stored = tuple(
        _to_device(values, transposed, backend, dtype, device=case.device)
        for values, transposed in zip(inputs, by_columns, strict=True)
    )
    views = (_transposed(array) if transposed else array for array, transposed in zip(stored, by_columns, strict=True))
    run = build(tuple(views), out, dtype, **chosen)
    return Candidate(
        case=case,
        device=device,
        backend=backend,
        dtype=dtype,
        run=run.run if isinstance(run, Phased) else run,
        out=out,
        timer=backend.timer(case.device, clock),
        flush=new_flush(cache_mode(case, device), device, backend),
        phases=run.phases if isinstance(run, Phased) else {},
        inputs=stored,
        threads=threads,
        by_columns=by_columns,
        stays_on_device=any(isinstance(values, DrawnInput) for values in inputs),
    )


def _to_device(values: Stored | DrawnInput, transposed: bool, backend: Backend, dtype: DType, *, device: str) -> Any:
    """Return an input on the device, in its order in memory."""
    if not isinstance(values, DrawnInput):
        return backend.to_device(_in_memory_order(values, transposed), dtype, device)
    lengths = (*values.shape[:-2], *values.shape[:-3:-1]) if transposed else values.shape
    array = backend.empty(lengths, dtype, device)
    device_arrays().fill(array, values, transposed)
    return array


def _in_memory_order(values: Stored, transposed: bool) -> Stored:
    """Return the values of an input in their order in memory: column-major where it is `transposed`."""
    return np.ascontiguousarray(_transposed(values)) if transposed else values


def _transposed(array: Any) -> Any:
    """Return a view of the same memory, rows for columns."""
    return array.swapaxes(-1, -2)


def unsupported(operation: Operation, implementation: Implementation, dtype: DType, device: Device) -> str | None:
    """Return why this combination cannot run here, or None when it can; loads nothing heavy."""
    backend = load_backend(implementation.backend)
    if not implementation.runs_on(device):
        return implementation.unsupported(dtype, device)
    if not backend.is_available():
        return f"{implementation.name} is not installed: {backend.INSTALL}"
    return (
        operation.unsupported(dtype) or implementation.unsupported(dtype, device) or backend.unsupported(dtype, device)
    )


def new_flush(cache: CacheState, device: Device, backend: Backend) -> Call | None:
    """Return the flush before each cold call, or None for a warm one."""
    return None if cache == "warm" else backend.flusher(device.id, flush_bytes(device))


def flush_bytes(device: Device) -> int:
    """Return the bytes to overwrite so that nothing survives in the last-level cache: twice its size."""
    return 2 * device.cache_bytes if device.cache_bytes else ASSUMED_FLUSH_BYTES


def cache_mode(case: Case, device: Device) -> CacheState:
    """Return the state of the caches a case's own samples are taken in: as asked, else cold on a GPU, warm on a CPU."""
    asked = case.options.cache
    if asked is None or asked == "both":
        return "warm" if device.kind == "cpu" else "cold"
    return asked


# A device as the measured library sees it: the same GPU, with the cache size that only CUDA may know.


def device_for(backend: Backend, device: Device) -> Device:
    """Return `device` with its last-level cache, where `backend` knows it and nothing else does.

    Raises:
        Unsupported: `backend` finds no GPU, or counts GPUs in another order, and would compute on another one.
    """
    if device.kind not in GPU_KINDS:
        return device
    facts = backend.driver_facts(device.id)
    if facts.problem:
        raise Unsupported(f"{facts.problem}; {device.name} has driver {device.driver or 'of unknown version'}")
    if device.kind == "cuda" and facts.uuid and device.uuid and not _is_same_gpu(device.uuid, facts.uuid):
        raise Unsupported(
            f"{device.id} is {device.name} ({device.uuid}), but CUDA would use GPU-{facts.uuid} in this "
            "process: set CUDA_DEVICE_ORDER=PCI_BUS_ID before anything loads CUDA"
        )
    return device if device.cache_bytes else replace(device, cache_bytes=facts.cache_bytes)


def _is_same_gpu(known: str, uuid: str) -> bool:
    """Return whether CUDA's `uuid` is the `known` one, or cannot be compared: a MIG instance's, or a truncated one."""
    prefix = "GPU-"  # of a whole GPU; what CUDA says of an instance of one depends on its version
    digits, known_digits = (text.replace("-", "").lower() for text in (uuid, known.removeprefix(prefix)))
    comparable = known.startswith(prefix) and len(digits) == len(known_digits)
    return digits == known_digits or not comparable or is_cut_into_instances(known)


# The devices of arrays that are too large for the host, and the module that works on them.


def torch_device_for(operation: Operation, shape: Shape, device: Device) -> str | None:
    """Return torch's device for making and checking a case of this size; None on the host, or without a GPU."""
    if device.kind != "cuda" or not is_large(operation, shape) or not load_backend("torch").is_available():
        return None
    return device_arrays().torch_device_of(device)


def device_arrays() -> Any:
    """Return the module that works on arrays on their device; it loads torch, which host arrays do without."""
    return import_module("gpuexplore.measure.arrays.device_arrays")


# The implementations, dtypes and devices that go together, generated from the tables.


def support_matrix(operation: Operation, device: Device) -> list[dict[str, Any]]:
    """Return a cell for each implementation and dtype: `reason` is None where they run on `device`."""
    return [
        {
            "implementation": implementation.name,
            "dtype": dtype.name,
            "device": device.id,
            "reason": unsupported(operation, implementation, dtype, device),
        }
        for implementation in operation.implementations
        for dtype in DTYPES.values()
    ]


# Calls without timing.


def wake(candidate: Candidate, call_s: float, clock: Clock) -> None:
    """Call without timing until the calls do not get faster any more, for 3 ms at least and about 10 ms at most.

    Args:
        candidate: built and warm; one whose caches are flushed between calls is called once, as it is timed.
        call_s: about how long a call takes.
        clock: in nanoseconds.
    """
    if call_s >= WAKING_CALL_S:
        return
    if candidate.flush is not None:
        candidate.timer.sample(candidate.run, calls=1, flush=candidate.flush)
        return
    no_faster = 0.98  # share of the previous window's time: noise changes it by less
    calls = max(1, ceil(WINDOW_S / max(call_s, 1e-9)))
    began_ns = clock()
    before_ns = 0
    while True:
        start_ns = clock()
        for _ in range(calls):
            candidate.run()
        candidate.backend.synchronize(candidate.case.device)
        window_ns = clock() - start_ns
        lasted_s = (clock() - began_ns) * 1e-9
        is_steady = before_ns and window_ns >= no_faster * before_ns
        if lasted_s + window_ns * 1e-9 > MOST_S or (is_steady and lasted_s >= LEAST_S):
            return
        before_ns = window_ns


def wake_briefly(candidate: Candidate, call_s: float, *, least: int = 1) -> None:
    """Call without timing for about 0.2 ms, `least` times at least: what is timed next is compared by factors."""
    if call_s < WAKING_CALL_S:
        for _ in range(max(least, ceil(BRIEFLY_S / max(call_s, 1e-9)))):
            candidate.run()
        candidate.backend.synchronize(candidate.case.device)
