"""Inputs that break kernels which are right for ordinary ones: a short list for every operation, never timed.

Softmax without the maximum taken off, a variance in one pass, a clamp, a kernel for square shapes or aligned arrays
are right on normal numbers at the shape that is timed. A kernel that is wrong on one of these is fragile. Further
calls at the timed shape detect a race, or an output that is wrong intermittently, and count the cores they use.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from gpuexplore.core import Case, GpuExploreError, Shape, Unsupported
from gpuexplore.core.dtypes import DTYPES, DType
from gpuexplore.hardware import thread_runs
from gpuexplore.measure.arrays.large import is_large
from gpuexplore.measure.candidates.candidate import Candidate
from gpuexplore.measure.candidates.failure import describe_error
from gpuexplore.measure.check.correctness import describe
from gpuexplore.measure.check.elements import judge
from gpuexplore.measure.check.group import Group
from gpuexplore.measure.check.inputs import Reference, make_inputs
from gpuexplore.measure.check.spot_checks import checked
from gpuexplore.operations import AWKWARD, Operation, load_build, shapes_of

CALLS_S = 0.25  # budget for repeated calls at the timed shape
FAILURES = (  # raised by functions, references or shapes for inputs they do not support
    GpuExploreError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    RuntimeError,
    TypeError,
    ValueError,
)
Change = Callable[[Any], Any]
UNCHANGED: Change = lambda array: array  # noqa: E731


@dataclass(frozen=True, slots=True)
class _Stress:
    """Inputs on which a correct kernel is correct too.

    Attributes:
        name: after "wrong on".
        shape: of the operation.
        change: what becomes of normal numbers before they are rounded.
        memory: of the inputs: as usual, from an odd element on, or every second element.
        planted: replaces the middle number of each input, NaN, or of the first one, infinity: the output has to be
            finite where the reference is, and nowhere else.
    """

    name: str
    shape: Shape
    change: Change = UNCHANGED
    memory: str = ""
    planted: float | None = None


def _stresses(operation: Operation, shape: Shape, dtype: DType, *, of_a_function: bool) -> Iterator[_Stress]:
    """Yield the stress inputs for an implementation of `operation`.

    Args:
        shape: of the case that is timed; smaller ones are tried too, of other proportions.
        of_a_function: whether it takes whatever arrays it is given, not those alone that a contract describes.
    """
    awkward = operation.awkward or AWKWARD.get(len(operation.axes), ())
    shapes = shapes_of(operation, awkward, "awkward") if awkward else []
    for each in shapes:
        yield _Stress(f"the shape {each}", each)
    some = min((shape, *shapes), key=lambda found: abs(operation.largest_array(found) - 2**14))
    if of_a_function:
        yield _Stress("arrays that start at an odd element", some, memory="odd")
        yield _Stress("strided views", some, memory="strided")
    if operation.phases:  # whose weights are scaled to their layers
        return
    most = 30.0 if dtype.bits <= 16 else 1000.0  # narrow formats have a small range, or few digits
    yield _Stress(f"inputs {most:,.0f} times as large", some, lambda array: array * most)
    yield _Stress(f"inputs around {most:,.0f}", some, lambda array: array + most)
    yield _Stress("inputs with NaN", some, planted=float("nan"))
    yield _Stress("inputs with infinity", some, planted=float("inf"))


def weakness(case: Case, group: Group) -> str | None:
    """Return the inputs on which an implementation is wrong, and its error; None where all are right.

    Values are left out that the dtype cannot hold, or on which the reference, in the precision of the arithmetic, is
    further off than rounding explains.
    """
    of_a_function = group.operation.implementation_named(case.implementation).of_a_user
    for stress in _stresses(group.operation, case.shape, group.dtype, of_a_function=of_a_function):
        if group.operation.flags_of(stress.shape) != group.operation.flags_of(case.shape):  # with a mask, or without
            continue
        if group.operation.largest_array(stress.shape) > 2**20 or is_large(group.operation, stress.shape):
            continue
        if found := _weakness_on(stress, case, group):
            return f"wrong on {stress.name}: {found}"
    return None


def _weakness_on(stress: _Stress, case: Case, group: Group) -> str | None:
    quiet: Any = {} if stress.planted is None else {"all": "ignore"}  # of NumPy, which warns of infinity
    try:
        with np.errstate(**quiet):
            reference = _reference(stress, group)
            if not _can_be_expected(reference, stress):
                return None
    except FAILURES:  # a user's shapes or reference are not for such inputs
        return None
    try:
        with np.errstate(**quiet):
            candidate = group.build(case, stress.shape, reference.inputs)
            if stress.memory:
                candidate = _in_other_memory(candidate, stress, case, group)
            candidate.poison()
            candidate.run()
            candidate.backend.synchronize(case.device)
            if stress.planted is not None:
                out = candidate.output()
                differing = sum(
                    int((np.isfinite(out[index]) != np.isfinite(want)).sum()) for index, want in reference.parts
                )
                return (
                    f"finite where the reference is not, or the reverse, in {differing:,} elements"
                    if differing
                    else None
                )
            accuracy = judge(
                candidate.output(), reference, stress.shape, group.growth(case.implementation, stress.shape)
            )
            return None if accuracy.within else describe(accuracy)
    except Unsupported:  # its library does not take arrays in such memory
        return None
    except FAILURES as error:
        return describe_error(error)
    finally:
        group.process.check()


def _reference(stress: _Stress, group: Group) -> Reference:
    operation = group.operation
    dtype = group.dtype
    seed = group.seed + 3  # so that the inputs are unseen
    changed = replace(operation, prepared=lambda arrays: tuple(map(stress.change, operation.prepared(arrays))))
    inputs = make_inputs(changed, stress.shape, dtype, "normal", seed=seed)
    if stress.planted is not None:
        for array in inputs[: 1 if stress.planted > 0 else None]:  # infinity in two of them may cancel
            array.reshape(-1)[array.size // 2] = dtype.round(np.array(stress.planted))
    return Reference(operation, dtype, inputs, seed)


def _can_be_expected(reference: Reference, stress: _Stress) -> bool:
    """Return whether there is an output, and of other values whether the dtype and the arithmetic stand them.

    The dtype holds all numbers, and the reference in the precision of the arithmetic is right.
    """
    operation = reference.operation
    dtype = reference.dtype
    shape = stress.shape
    lengths = [length for array in (*operation.inputs(shape), operation.output(shape)) for length in array]
    if any(length < 1 for length in lengths) or not reference.parts:
        return False
    if stress.change is UNCHANGED:
        return stress.planted is None or _contains(reference, stress.planted)
    most = (dtype.largest or float(np.finfo(np.float32).max)) / 4
    with np.errstate(all="ignore"):
        inputs = [dtype.widen(array) for array in reference.inputs]
        numbers: list[Any] = [*inputs, *(expected for _, expected in reference.parts), *reference.scales]
        if not all(bool((np.abs(array) < most).all()) for array in numbers):
            return False
        narrow = operation.reference(*(array.astype(DTYPES[dtype.accumulate].storage) for array in inputs))
        return judge(narrow.astype(np.float64), reference, shape).within


def _contains(reference: Reference, planted: float) -> bool:
    """Return whether a number that is not finite shows in the output; not where infinity less infinity makes it NaN."""
    outputs = [expected for _, expected in reference.parts]
    undefined = planted > 0 and any(np.isnan(expected).any() for expected in outputs)
    return not undefined and any(not np.isfinite(expected).all() for expected in outputs)


def check_often(candidate: Candidate, group: Group, call_s: float) -> float | None:
    """Check call after call on the timed values; return how many cores they used, None where threads were not set.

    Args:
        candidate: built and warm, with the values that are timed as its inputs.
        group: of its case.
        call_s: seconds of a call, as it was timed.

    Raises:
        IncorrectOutput: an output is wrong.
    """
    most = 25  # what is wrong in one of two calls gets through all of them once in 30 million runs
    calls = max(1, min(most, int(CALLS_S / max(call_s, 1e-9))))
    for _ in range(calls):
        candidate.poison()
        candidate.run()
        candidate.backend.synchronize(candidate.case.device)
        checked(candidate, group, group.timed_reference)
    if candidate.device.kind != "cpu" or candidate.case.options.threads is None or call_s > CALLS_S:
        return None
    group.isolation.wait_for_idle_threads()
    return _cores_of(candidate, call_s)


def _cores_of(
    candidate: Candidate,
    call_s: float,
    *,
    runs: Callable[[], dict[int, float]] = thread_runs,
    cpu: Callable[[], float] = time.process_time,
) -> float | None:
    """Return the CPU seconds of calls for each of the thread that computed longest: others may have the other cores.

    Args:
        candidate: built and warm.
        call_s: seconds of a call.
        runs: returns the CPU seconds of each thread of this process.
        cpu: returns those of all of them.
    """
    least_s = 80e-3  # Linux counts a thread's time in ticks of 4 ms
    before = runs()
    began_s = cpu()
    for _ in range(max(1, int(least_s / max(call_s, 1e-7)))):
        candidate.run()
    cpu_s = cpu() - began_s
    after = runs()
    longest_s = max((after[thread] - before.get(thread, 0.0) for thread in after), default=0.0)
    return cpu_s / longest_s if longest_s else None


def _in_other_memory(candidate: Candidate, stress: _Stress, case: Case, group: Group) -> Candidate:
    """Return the candidate built again, on inputs at other addresses or with other strides."""
    implementation = group.operation.implementation_named(case.implementation)
    arrays = tuple(_view(candidate, array, stress.memory) for array in candidate.inputs)
    pairs = zip(arrays, candidate.by_columns, strict=True)
    views = tuple(array.swapaxes(-1, -2) if by_columns else array for array, by_columns in pairs)
    run = load_build(group.operation, implementation)(views, candidate.out, group.dtype)
    return replace(candidate, inputs=arrays, run=run)


def _view(candidate: Candidate, array: Any, memory: str) -> Any:
    """Return a view of other memory with the same values: from an odd element on, or every second one."""
    lengths = tuple(array.shape)
    count = prod(lengths)
    wanted = (count + 1,) if memory == "odd" else (2 * count,)
    buffer = candidate.backend.to_device(
        np.zeros(wanted, candidate.dtype.storage), candidate.dtype, candidate.case.device
    )
    view = (buffer[1:] if memory == "odd" else buffer[::2]).reshape(lengths)
    view[...] = array
    return view
