"""A group of cases that are sampled in rounds, and what they share: operation, dtype, device, inputs and reference.

The cost guard: the bytes and seconds a case would need, estimated before it is started.

Seconds are extrapolated from the same implementation on smaller shapes, in proportion to the work. The probe grows
until its call is long enough for overheads to be negligible, or until the estimate is well within the limit.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import count, groupby
from math import inf, prod, sqrt
from threading import active_count

from gpuexplore.backends import Clock
from gpuexplore.core import (
    Case,
    DataMode,
    Device,
    Environment,
    Result,
    Shape,
    TooLarge,
    TooSlow,
    format_bytes,
    format_seconds,
)
from gpuexplore.core.dtypes import DType, dtype_named
from gpuexplore.measure.arrays import large
from gpuexplore.measure.arrays.large import TOGETHER, drawn, is_large, layout
from gpuexplore.measure.candidates.candidate import Candidate, Inputs, build_candidate, torch_device_for
from gpuexplore.measure.candidates.failure import cause_of, failed
from gpuexplore.measure.check.inputs import (
    PROVED_ELEMENTS,
    PROVED_POSITIONS,
    PROVED_ROWS,
    SEED,
    AnyReference,
    BlockedReference,
    DeviceReference,
    Reference,
    make_inputs,
)
from gpuexplore.measure.check.process_snapshot import ProcessSnapshot, allow_tf32
from gpuexplore.measure.conditions.environment import describe_environment, free_bytes
from gpuexplore.measure.conditions.isolation import Isolation
from gpuexplore.operations import Growth, Operation, load_build, operation_named
from gpuexplore.operations.sampling import most_lines

MAX_BUDGET_MULTIPLE = 40  # a case may take this many times its sampling budget: slow calls still get an interval
MIN_CALLS = 4  # one first call, three samples
CHEAP_WORK = 20_000_000  # FLOPs and bytes: 0.2 s for the slowest implementation known (0.1 GFLOP/s)
LONG_PROBE_S = 0.25  # no larger probe that would take longer: it would only correct the error of a busy moment
FLOAT64_BYTES = 8
REFERENCES = 3  # for the timed values, for other values, and for values unseen by any call
COPIES = 2  # copies of compared rows or sums, which are assembled from parts


def limit_s(case: Case) -> float:
    """Return the most seconds the calls of one case may take together."""
    return MAX_BUDGET_MULTIPLE * case.options.budget_s


def work(operation: Operation, shape: Shape) -> int:
    """Return FLOPs plus elements moved, which time is taken to be proportional to, memory-bound or compute-bound."""
    return operation.flop_count(shape) + element_count(operation, shape)


def element_count(operation: Operation, shape: Shape) -> int:
    """Return how many numbers the inputs and the output hold."""
    return sum(map(prod, (*operation.inputs(shape), operation.output(shape))))


def array_bytes(operation: Operation, shape: Shape, itemsize_bytes: int) -> int:
    """Return the bytes of the inputs and the output of one case."""
    return element_count(operation, shape) * itemsize_bytes


def needed_bytes(operation: Operation, shape: Shape, itemsize_bytes: int, kind: str) -> int:
    """Return the bytes that one case takes on a device of this `kind`: its arrays, and what they are checked with.

    A CPU also stores the values and the references of the checks. A GPU stores a second output, which checks fill, or
    functions of torch allocate anew, and of a large case blocks of its reference.
    """
    arrays = array_bytes(operation, shape, itemsize_bytes)
    if kind == "cpu":
        return arrays + host_bytes(operation, shape, itemsize_bytes)
    twice = arrays + prod(operation.output(shape)) * itemsize_bytes
    return twice + _reference_bytes(operation, shape) if is_large(operation, shape) else twice


def host_bytes(operation: Operation, shape: Shape, itemsize_bytes: int) -> int:
    """Return the bytes of host memory in which the arrays of one case are made and checked."""
    return element_count(operation, shape) * REFERENCES * (itemsize_bytes + FLOAT64_BYTES)


def host_bytes_of_large(operation: Operation, shape: Shape) -> int:
    """Return the bytes of host memory that a large case takes whose arrays stay on their device.

    Those are of what proves its reference, and for a large product of the rows and sums that are compared.
    """
    number_bytes = 64  # of each number that the host draws to prove a reference: its index, itself, its float64
    cut = layout(operation, shape)
    if not cut.by_lines:
        return number_bytes * (max(cut.own, min(PROVED_ELEMENTS, PROVED_POSITIONS * cut.own)) + cut.shared)
    rows, length, columns = _product_of(operation, shape)
    compared = most_lines(rows) * columns + rows * -(-columns // TOGETHER)
    kept = REFERENCES if cut.count == 1 else 1
    found = 2  # as large as a reference: the output, and its size
    proved_lines = PROVED_ROWS + TOGETHER  # of the two inputs, at a time
    return compared * FLOAT64_BYTES * (COPIES * kept + found) + number_bytes * length * proved_lines


def _reference_bytes(operation: Operation, shape: Shape) -> int:
    """Return the bytes that a device holds at once to make the reference of a large case, and to compare with it.

    That is a block with all that comes of it; of a large product (m, k) @ (k, n) in float64 the rows that are compared,
    a random one of each block, the first and the last, or the sums of columns, and blocks of all else.
    """
    blocks = 6  # of float64 numbers, at once: what is drawn, how, what it becomes and is compared with
    cut = layout(operation, shape)
    block = FLOAT64_BYTES * blocks * max(large.BLOCK_ELEMENTS, 0 if cut.by_lines else cut.own + cut.shared)
    if not cut.by_lines:
        return block
    rows, length, columns = _product_of(operation, shape)
    return FLOAT64_BYTES * length * max(most_lines(rows), -(-columns // TOGETHER)) * COPIES + block


def _product_of(operation: Operation, shape: Shape) -> tuple[int, int, int]:
    """Return m, k and n of one product (m, k) @ (k, n)."""
    (rows, length), (_, columns) = layout(operation, shape).inputs
    return rows, length, columns


def check_memory(needed: int, free: int | None, device: Device) -> None:
    """Raise TooLarge when `needed` bytes are more than the `free` ones."""
    if free is not None and needed > free:
        raise TooLarge(f"needs {format_bytes(needed)}, {device.id} has {format_bytes(free)} free")


def check_duration(case: Case, call_s: float) -> None:
    """Raise TooSlow when the fewest calls that give an interval take longer than the limit."""
    if call_s * MIN_CALLS > limit_s(case):
        raise TooSlow(
            f"one call would take about {format_seconds(call_s)} and {MIN_CALLS} are needed: over the limit of "
            f"{format_seconds(limit_s(case))} ({MAX_BUDGET_MULTIPLE} × the budget of {case.options.budget_s:g} s)"
        )


def _probe_shapes(operation: Operation, shape: Shape) -> list[Shape]:
    """Return smaller shapes of the same proportions, the cheapest first; none when `shape` is cheap or the only one."""
    shapes: list[Shape] = []
    while work(operation, shape) > CHEAP_WORK and (smaller := operation.halved(shape)) != shape:
        shape = smaller
        shapes.append(shape)
    return shapes[::-1]


def estimate_call_s(operation: Operation, shape: Shape, time_call: Callable[[Shape], float], enough_s: float) -> float:
    """Return about how long one call at `shape` takes, from calls at smaller shapes.

    Args:
        operation: what is computed.
        shape: the shape to estimate.
        time_call: seconds of one warmed-up call at a smaller shape.
        enough_s: an estimate at or below this needs no better one.
    """
    per_work_s = 0.0
    for smaller in _probe_shapes(operation, shape):
        if per_work_s * work(operation, smaller) > LONG_PROBE_S:
            break
        per_work_s = time_call(smaller) / work(operation, smaller)
        if per_work_s * work(operation, shape) <= enough_s:
            break
    return per_work_s * work(operation, shape)


def open_at_once(groups: Sequence[Sequence[Case]], device: Device) -> Iterator[list[Sequence[Case]]]:
    """Yield `groups` in order, as many together as a quarter of the free memory holds with what checks them."""
    free = free_bytes(device)
    most = min(4 * 2**30, free / 4 if free is not None else inf)
    together: list[Sequence[Case]] = []
    total = 0
    for group in groups:
        operation = operation_named(group[0].operation)
        dtype = dtype_named(group[0].dtype)
        needed = len(group) * needed_bytes(operation, group[0].shape, dtype.itemsize_bytes, device.kind)
        if together and total + needed > most:
            yield together
            together = []
            total = 0
        together.append(group)
        total += needed
    if together:
        yield together


@dataclass(eq=False)
class Group:
    """The state that the cases of a group share while they are measured.

    Attributes:
        device: of a CPU first perhaps without peaks; with them, in `environment` too, before a case is concluded.
        clock: in nanoseconds.
        isolation: of the calls; at the end of `isolate_core` the process is compared with `process`.
        process: the state of the process before anything was built.
        torch_device: where torch makes and checks arrays that are too large for the host; None: there are none, or it
            cannot.
        threads: of Python, when it was opened.
    """

    operation: Operation
    dtype: DType
    shape: Shape
    device: Device
    environment: Environment
    data: DataMode
    clock: Clock
    isolation: Isolation
    seed: int = SEED
    process: ProcessSnapshot = field(default_factory=partial(ProcessSnapshot, None))
    torch_device: str | None = None
    threads: int = field(default_factory=active_count)

    @cached_property
    def checked_reference(self) -> AnyReference:
        """The reference every implementation is checked against: always on random data."""
        return self._reference("normal", self.seed)

    @cached_property
    def other_reference(self) -> AnyReference:
        """A reference on other random data, for calls between and after the timed ones."""
        return self._reference("normal", self.seed + 1)

    @cached_property
    def timed_reference(self) -> AnyReference:
        """The reference for the data that are timed: the same object unless zeros or ones were asked for."""
        return self.checked_reference if self.data == "normal" else self._reference(self.data, self.seed)

    def unseen_references(self) -> Iterator[AnyReference]:
        """Yield references on data that no call of this candidate has met, from the first one on for every case."""
        yield self._unseen
        for number in count(3):
            yield self._reference("normal", self.seed + number)

    @cached_property
    def _unseen(self) -> AnyReference:
        return self._reference("normal", self.seed + 2)  # after the data that are timed, and the others

    def resume(self) -> None:
        """Set torch's precision of fp32 for this group: one in tf32 may have been measured meanwhile."""
        allow_tf32(self.dtype.matrix_only)

    def build(self, case: Case, shape: Shape, inputs: Inputs) -> Candidate:
        """Return the implementation of `case` built on `inputs` of `shape`."""
        moved = Case(case.operation, shape, case.dtype, case.implementation, case.device, case.options)
        return build_candidate(moved, self.operation, self.device, inputs=inputs, clock=self.clock)

    def inputs(self, shape: Shape, data: DataMode = "normal") -> Inputs:
        """Return inputs of `shape` in this group's dtype."""
        return self._inputs(shape, data, self.seed)

    def failed(self, case: Case, error: Exception) -> Result:
        """Return the result of a case that ended with `error`."""
        return replace(failed(case, cause_of(error, case, self.device), self.environment), seed=self.seed)

    def _reference(self, data: DataMode, seed: int) -> AnyReference:
        inputs = self._inputs(self.shape, data, seed)
        if self.torch_device is None or not is_large(self.operation, self.shape):
            return Reference(self.operation, self.dtype, inputs, seed)
        if layout(self.operation, self.shape).leading:
            return BlockedReference(self.operation, self.shape, self.dtype, inputs, seed, self.torch_device)
        return DeviceReference(self.operation, self.dtype, inputs, seed, self.torch_device)

    def _inputs(self, shape: Shape, data: DataMode, seed: int) -> Inputs:
        if self.torch_device is None or not is_large(self.operation, shape):
            return make_inputs(self.operation, shape, self.dtype, data, seed=seed)
        return tuple(
            drawn(lengths, self.dtype, data, seed=seed, number=number)
            for number, lengths in enumerate(self.operation.inputs(shape))
        )

    def growth(self, implementation: str, shape: Shape) -> Growth:
        """Return by how much roundings of sums are larger in an implementation than where terms are added one by one.

        Tensor cores truncate the partial sum after every few terms, so that what k / 8 steps lose, up to a last place
        of a partial sum as large as its terms' norm, points toward zero and adds up: k / 8 · 2 u s, √k / 16 times
        the 4 u √k s of rounding. cuBLAS's tf32 products of 8192 terms needed 2.1 times that on an H200.
        """
        row = self.operation.implementation_named(implementation)
        growth = row.growth(shape, self.dtype, self.device)
        may_truncate = row.of_a_user or row.computes_in(self.dtype.name, self.device)[1] == "matrix"
        if self.device.kind != "cuda" or not may_truncate or self.dtype.name not in ("tf32", "bf16", "fp16"):
            return growth
        products = self.operation.products(shape) if self.operation.products else ()
        longest = max((product.k for product in products if min(product.m, product.n) > 1), default=0)
        most = 6.0  # that of 9216 terms: 2.1 at 8192, growing as √k, reaches it at 65536
        return growth._replace(element=max(growth.element, min(most, sqrt(longest) / 16)))


def groups_of(cases: Sequence[Case]) -> list[list[Case]]:
    """Return `cases` split where their group changes, in order."""
    return [list(group) for _, group in groupby(cases, key=lambda case: case.group)]


def open_group(cases: Sequence[Case], device: Device, *, clock: Clock, isolation: Isolation, seed: int = SEED) -> Group:
    """Return what `cases`, which agree in `Case.group`, share; `seed` decides the numbers they compute with."""
    first = cases[0]
    if any(case.group != first.group for case in cases):
        raise ValueError("the cases of a group differ in more than the implementation")
    operation = operation_named(first.operation)
    backends = [operation.implementation_named(case.implementation).backend for case in cases]
    threads = first.options.threads or (device.cores if device.kind == "cpu" else None)  # a GPU's cores are no threads
    torch_device = torch_device_for(operation, first.shape, device)  # loads the checks there, part of the snapshot then
    for case in cases:  # so that what they compute with is in the snapshot
        with suppress(Exception):  # it is reported when the case is built
            load_build(operation, operation.implementation_named(case.implementation))
    dtype = dtype_named(first.dtype)
    allow_tf32(dtype.matrix_only)  # so that no implementation has to change it: as in Group.resume
    process = ProcessSnapshot(threads, is_tf32_allowed=dtype.matrix_only)
    environment = describe_environment(device, backends, threads)
    if torch_device:
        environment = replace(environment, settings={**environment.settings, "inputs": f"made on {device.id}"})
    return Group(
        operation=operation.at(first.shape),
        dtype=dtype,
        shape=first.shape,
        device=device,
        environment=environment,
        data=first.options.data,
        clock=clock,
        isolation=replace(isolation, isolate_core=process.guarding(isolation.isolate_core)),
        seed=seed,
        process=process,
        torch_device=torch_device,
    )
