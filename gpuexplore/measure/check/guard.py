"""The cost guard: the bytes and seconds a case would need, estimated before it is started.

Seconds are extrapolated from the same implementation on smaller shapes, in proportion to the work. The probe grows
until its call is long enough for overheads to be negligible, or until the estimate is well within the limit.
"""

from collections.abc import Callable, Iterator, Sequence
from math import inf, prod

from gpuexplore.core import Case, Device, Shape, TooLarge, TooSlow, format_bytes, format_seconds
from gpuexplore.core.dtypes import dtype_named
from gpuexplore.measure.arrays import large
from gpuexplore.measure.arrays.large import TOGETHER, is_large, layout
from gpuexplore.measure.check.inputs import PROVED_ELEMENTS, PROVED_POSITIONS, PROVED_ROWS
from gpuexplore.measure.conditions.environment import free_bytes
from gpuexplore.operations import Operation, operation_named
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
