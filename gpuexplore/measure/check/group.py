"""A group of cases that are sampled in rounds, and what they share: operation, dtype, device, inputs and reference."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import count, groupby
from math import sqrt
from threading import active_count

from gpuexplore.backends.timer import Clock
from gpuexplore.core.dtypes import DType, dtype_named
from gpuexplore.core.model import Case, DataMode, Device, Environment, Result, Shape
from gpuexplore.measure.arrays.large import drawn, is_large, layout
from gpuexplore.measure.candidates.candidate import Candidate, Inputs, build_candidate, torch_device_for
from gpuexplore.measure.candidates.failure import cause_of, failed
from gpuexplore.measure.check.inputs import (
    SEED,
    AnyReference,
    BlockedReference,
    DeviceReference,
    Reference,
    make_inputs,
)
from gpuexplore.measure.check.process_snapshot import ProcessSnapshot, allow_tf32
from gpuexplore.measure.conditions.environment import describe_environment
from gpuexplore.measure.conditions.isolation import Isolation
from gpuexplore.operations import Growth, Operation, load_build, operation_named


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
