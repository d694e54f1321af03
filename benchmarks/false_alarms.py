"""How often the check of an output calls an honest one wrong, and how small an error it surely sees.

Honest outputs are those of every implementation that runs on this CPU, at awkward shapes, long sums and random numbers,
and products and sums whose terms are added in orders that other devices use: one by one, in pairs, and, where tensor
cores take the dtype, in blocks whose sums are cut off after 24 bits as theirs are. Each is judged as a result is; what
counts is its share of what is allowed, of the worst element or of the norm: above 1 is a false alarm. The rate is
extrapolated from the largest fifth of the shares of an operation and dtype as a Gaussian tail, which the sum of
independent bounded roundings does not exceed: their squares have an exponential one.

    python -m benchmarks.false_alarms [--seconds 240] [--seed 1]
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, inf, isfinite, prod
from typing import Any

import numpy as np

from gpuexplore.core.dtypes import DTYPES, DType
from gpuexplore.core.model import Case, DataMode, Options, Shape
from gpuexplore.hardware.cpu import cpu_device
from gpuexplore.measure.candidates.candidate import build_candidate, unsupported
from gpuexplore.measure.check.elements import bound_of, judge
from gpuexplore.measure.check.inputs import Reference, make_inputs
from gpuexplore.operations import OPERATIONS
from gpuexplore.operations.contract import Array, Operation
from gpuexplore.operations.implementation import Implementation

TAIL = 0.2  # of the shares, the largest ones
AIM = 1e-6  # false alarms of a case
ALIKE = 1e-9  # shares that differ by less are one number, and have no tail
UNLUCKY: Mapping[str, Sequence[tuple[int, ...]]] = {  # long sums, sums of one or two terms, rows of two, samples
    "matmul": ((2, 65_536, 3), (300, 2, 300), (64, 1, 64), (1, 3, 1), (1100, 1000, 1100)),
    "batched_matmul": ((2, 2, 3, 20_000, 3, 4), (7, 3, 2, 2, 2, 1)),
    "linear": ((1, 50_000, 3), (500, 2, 100), (1100, 1000, 1100)),
    "matvec": ((3, 200_000), (5000, 2), (20_000, 1)),
    "reduce_sum": ((3, 300_000), (5000, 2), (20_000, 3)),
    "softmax": ((3, 100_000), (3000, 2), (1000, 3)),
    "layer_norm": ((3, 100_000), (1000, 5)),
    "conv2d": ((1, 64, 9, 9, 4, 3), (2, 1, 20, 20, 3, 1), (1, 1, 64, 64, 1, 9)),
    "attention": ((1, 2, 2, 1), (2, 4, 300, 2), (1, 1, 700, 16)),
    "vector_add": ((300_000,),),
    "multiply": ((500, 600),),
    "triad": ((300_000,),),
    "copy": ((300_000,),),
    "optimizer_step": ((100_000, 1), (100_000, 2), (100_000, 3), (3, 3)),
    "mlp_step": ((2, 2, 2, 2, 4), (256, 32, 128, 10, 2), (300, 5, 1, 2, 2), (70, 4, 8, 3, 3)),
    "cnn_step": ((1, 1, 4, 2, 2), (8, 1, 14, 8, 10), (100, 1, 4, 2, 2)),
    "transformer_step": ((1, 2, 16, 2, 1, 2), (2, 16, 32, 4, 2, 10), (20, 4, 16, 2, 1, 2)),
}
BLOCK = 16  # terms that tensor cores add at a time
SMALL, SEEDS = 10_000, 20  # elements of inputs that are drawn so often a round: few terms cancel by chance most often
ILL_CONDITIONED = (("transformer_step", "ones"),)  # norms of rows of equal numbers: roundings are all there is to scale


@dataclass(frozen=True, slots=True)
class Trial:
    """One honest output: what made it, its elements, and the share of what is allowed that its error has."""

    operation: str
    dtype: str
    shape: Shape
    made_by: str
    elements: int
    share: float


def one_by_one(terms: Array) -> Array:
    """Return sums of the last axis, kept in the format of the terms, from the first term to the last."""
    return np.asarray(np.cumsum(terms, axis=-1, dtype=terms.dtype)[..., -1])


def in_pairs(terms: Array) -> Array:
    """Return the sums of sums of halves."""
    while terms.shape[-1] > 1:
        half = terms.shape[-1] // 2
        terms = np.concatenate([terms[..., :half] + terms[..., half : 2 * half], terms[..., 2 * half :]], axis=-1)
    return np.asarray(terms[..., 0])


def cut_off(terms: Array) -> Array:
    """Return sums of blocks of 16, each added exactly to the sum before and cut off toward zero."""
    total = np.zeros(terms.shape[:-1], terms.dtype)
    for start in range(0, terms.shape[-1], BLOCK):
        exact = total.astype(np.float64) + terms[..., start : start + BLOCK].astype(np.float64).sum(axis=-1)
        nearest = exact.astype(terms.dtype)
        too_large = np.abs(nearest.astype(np.float64)) > np.abs(exact)
        total = np.where(too_large, np.nextafter(nearest, np.zeros_like(nearest)), nearest)
    return total


ORDERS = {"one by one": one_by_one, "in pairs": in_pairs, "in blocks of 16, cut off": cut_off}
MOST_TERMS = 2_000_000  # of a simulated case


def shapes_of(operation: Operation) -> list[Shape]:
    """Return the shapes an operation is judged at, which a run takes."""
    lengths = (*operation.awkward, *UNLUCKY[operation.name])
    listed = [Shape(tuple(zip(operation.axes, each, strict=True))) for each in lengths]
    shapes = [operation.shape_of_size(operation.default_sizes[0]), *listed]
    if refused := [(shape, problem) for shape in shapes if (problem := operation.problem(shape))]:
        raise ValueError(f"{operation.name}: no run takes {refused}")
    return shapes


def trials_of(operation: Operation, dtype: DType, shape: Shape, *, data: DataMode, seed: int) -> Iterator[Trial]:
    """Yield the outputs of each implementation and of each order of a sum, judged."""
    inputs = make_inputs(operation, shape, dtype, data, seed=seed)
    reference = Reference(operation, dtype, inputs, seed)
    if max(np.abs(expected).max() for _, expected in reference.parts) > (dtype.largest or inf):
        return  # no output is right
    outputs = [*_measured(operation, dtype, shape, inputs), *_simulated(operation, dtype, inputs)]
    for made_by, out in outputs:
        share = judge(out, reference, shape).share
        yield Trial(operation.name, dtype.name, shape, made_by, out.size, share)


def _measured(operation: Operation, dtype: DType, shape: Shape, inputs: Any) -> Iterator[tuple[str, Array]]:
    device = cpu_device()
    for implementation in operation.implementations:
        if _runs(operation, implementation, dtype, device):
            case = Case(operation.name, shape, dtype.name, implementation.name, "cpu", Options(threads=device.cores))
            candidate = build_candidate(case, operation, device, inputs=inputs, clock=time.perf_counter_ns)
            candidate.poison()
            candidate.run()
            yield implementation.name, candidate.output()


def _runs(operation: Operation, implementation: Implementation, dtype: DType, device: Any) -> bool:
    return not implementation.optional and unsupported(operation, implementation, dtype, device) is None


def _simulated(operation: Operation, dtype: DType, inputs: Any) -> Iterator[tuple[str, Array]]:
    """Yield sums of the very terms of a product or a row, kept in the format sums are kept in, then rounded once."""
    terms = _terms(operation.name, [dtype.widen(array).astype(DTYPES[dtype.accumulate].storage) for array in inputs])
    if terms is not None:
        for name, add in ORDERS.items():
            if add is not cut_off or dtype.accumulate != dtype.name:
                yield name, dtype.widen(dtype.round(add(terms)))


def _terms(name: str, inputs: Sequence[Any]) -> Any:
    """Return the terms of each element along a last axis; None of operations that are no sums, or too many of them."""
    if name == "reduce_sum":
        return inputs[0]
    if name == "matvec":
        return inputs[0] * inputs[1]
    if name in ("matmul", "linear") and inputs[0].size * inputs[1].shape[1] <= MOST_TERMS:
        return inputs[0][:, None, :] * inputs[1].T[None]
    return None


def collect(seconds: float, seed: int) -> list[Trial]:
    """Return trials of rounds over all operations, dtypes and shapes, for so many seconds and at least one round."""
    found: list[Trial] = []
    ends, rounds = time.monotonic() + seconds, 0
    while not rounds or time.monotonic() < ends:
        for operation in OPERATIONS.values():
            for dtype in map(DTYPES.__getitem__, operation.dtypes):
                found += _round(operation, dtype, seed + rounds, is_first=not rounds)
            if rounds and time.monotonic() > ends:
                break
        rounds += 1
    return found


def _round(operation: Operation, dtype: DType, seed: int, *, is_first: bool) -> Iterator[Trial]:
    modes: Sequence[DataMode] = ("normal", "zeros", "ones") if is_first else ("normal",)
    for shape in shapes_of(operation):
        for data in modes:
            if (operation.name, data) not in ILL_CONDITIONED:
                for each in range(_seeds(operation, shape) if data == "normal" else 1):
                    yield from trials_of(operation, dtype, shape, data=data, seed=seed * SEEDS + each)


def _seeds(operation: Operation, shape: Shape) -> int:
    return SEEDS if sum(map(prod, operation.inputs(shape))) <= SMALL else 1


def rate(shares: Sequence[float]) -> float:
    """Return the chance of a share above 1 if the largest fifth goes on as a Gaussian tail."""
    array = np.sort(np.square(shares))
    if not isfinite(array[-1]) or array[-1] > 1:
        return float(np.mean(array > 1))
    tail = array[int(len(array) * (1 - TAIL)) :]
    beyond = float(tail.mean() - tail[0])
    return TAIL * exp(-(1 - tail[0]) / beyond) if beyond > ALIKE else 0.0


def power(name: str, shape: Shape, dtype: DType) -> tuple[float, float]:
    """Return the smallest error of one element that is surely seen, in rms of the output: the median's, and anyone's.

    An honest output is off already, perhaps the other way, so that the error must be larger than both.
    """
    operation = OPERATIONS[name]
    inputs = make_inputs(operation, shape, dtype, "normal")
    reference, bound = Reference(operation, dtype, inputs), bound_of(operation, shape, dtype)
    (_, expected), scale = reference.parts[0], np.broadcast_to(reference.scales[0], reference.parts[0][1].shape)
    off = np.abs(dtype.widen(dtype.round(expected)) - expected)
    seen = (bound.allowed(np.abs(expected), scale) + off) / np.sqrt(np.mean(np.square(expected)))
    return float(np.median(seen)), float(seen.max())


def _print_trials(trials: Sequence[Trial]) -> None:
    cells = defaultdict(list)
    for trial in trials:
        cells[trial.operation, trial.dtype].append(trial)
    for (operation, dtype), some in cells.items():
        worst, expected = max(some, key=lambda trial: trial.share), rate([trial.share for trial in some])
        compared = sum(trial.elements for trial in some)
        print(
            f"{operation:16} {dtype:5} {len(some):5} outputs, {compared:11,} elements: worst share {worst.share:.3f} "
            f"({worst.made_by} at {worst.shape}), rate {expected:.0e}"
        )
    rates = [(rate([trial.share for trial in some]), len(some)) for some in cells.values()]
    mean = sum(each * count for each, count in rates) / sum(count for _, count in rates)
    alarms = sum(trial.share > 1 for trial in trials)
    print(
        f"\n{len(trials):,} outputs, {sum(trial.elements for trial in trials):,} elements, {alarms} false alarms; "
        f"rate of a case {mean:.1e} over all (aim {AIM:.0e}), {max(each for each, _ in rates):.1e} in the worst row"
    )


def main() -> None:
    """Print a row for each operation and dtype, the rate over all, and the power."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=240.0, help="how long to go on; one round is made in any case")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    _print_trials(collect(asked.seconds, asked.seed))
    print("\nerror of one element that is surely seen, in rms of the output: at the median element, at any")
    for name, shape in (("vector_add", Shape.of(n=10**6)), ("matmul", Shape.of(m=1024, k=1024, n=1024))):
        for dtype in map(DTYPES.__getitem__, OPERATIONS[name].dtypes):
            median, most = power(name, shape, dtype)
            print(f"{name} {'x'.join(map(str, shape)):14} {dtype.name:5} {median:.1e} {most:.1e}")


if __name__ == "__main__":
    main()
