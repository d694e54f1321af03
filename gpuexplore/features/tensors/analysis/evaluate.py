"""From an expression to a chain and its storages: steps are arithmetic on strides, and typed text is never executed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from string import ascii_uppercase
from typing import Any

from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.tensors.analysis.chain import MOST_LISTED, Chain, ChainStep
from gpuexplore.features.tensors.analysis.expression import NAME, Index, Statement, TensorCall, read_expression
from gpuexplore.features.tensors.analysis.indexing import indexed
from gpuexplore.features.tensors.analysis.layout import has_overlap
from gpuexplore.features.tensors.analysis.operations import METHODS, ViewRefused
from gpuexplore.features.tensors.analysis.value import Storage, TensorView, row_order

Values = list[float] | None
MOST_ELEMENTS = 2**27  # 512 MiB in fp32: what fits a laptop
MOST_AXES = 8
MOST_STEPS = 64
Start = tuple[tuple[int, ...], Callable[[int], float]]  # the shape, and the value of each cell


class _Memory:
    """Cells by the name of their storage: A is the first that was made."""

    def __init__(self) -> None:
        self._sizes: dict[str, int] = {}
        self._values: dict[str, Values] = {}

    def new(self, view: TensorView, value_of: Callable[[int], float] | Sequence[float]) -> TensorView:
        """Return `view` over new storage, whose cell i is ``value_of(i)``, or the i-th of a sequence."""
        look_up = value_of if callable(value_of) else value_of.__getitem__
        size = view.element_count
        return self._allocated(view, [look_up(cell) for cell in range(size)] if size <= MOST_LISTED else None)

    def copy(self, source: TensorView, target: TensorView) -> TensorView:
        """Return `target` over new storage, its elements those of `source` in row order."""
        source_values = self._values[source.storage]
        if source_values is None or target.element_count > MOST_LISTED:
            return self._allocated(target, None)
        values = [0.0] * target.element_count
        for cell, other in zip(target.cells(), source.cells(), strict=True):
            values[cell] = source_values[other]
        return self._allocated(target, values)

    def product(self, left: TensorView, right: TensorView, target: TensorView) -> TensorView:
        """Return `target` over new storage, its elements the matrix product of two tensors, where they are few."""
        rows, columns, inner = *target.shape, left.shape[1]
        first, second = self._values[left.storage], self._values[right.storage]
        if first is None or second is None or rows * columns * inner > MOST_LISTED:
            return self._allocated(target, None)
        pairs = ((row, column) for row in range(rows) for column in range(columns))
        sums = (
            sum(first[left.cell((row, k))] * second[right.cell((k, column))] for k in range(inner))
            for row, column in pairs
        )
        return self._allocated(target, list(sums))

    def write(self, view: TensorView, value: float) -> None:
        """Set every cell that `view` shows to `value`; none of them is shown twice."""
        values = self._values[view.storage]
        if values is None:
            return
        for cell in view.cells():
            values[cell] = value

    def storages(self) -> dict[str, Storage]:
        """Return every storage as it is now."""
        return {name: Storage(name, size, _frozen(self._values[name])) for name, size in self._sizes.items()}

    def _allocated(self, view: TensorView, values: Values) -> TensorView:
        count = len(self._sizes)
        cycle, letter = divmod(count, len(ascii_uppercase))
        name = ascii_uppercase[letter] + (str(cycle) if cycle else "")
        self._sizes[name], self._values[name] = view.element_count, values
        return replace(view, storage=name, offset=0)


def _frozen(values: Values) -> tuple[float, ...] | None:
    return None if values is None else tuple(values)


class StepRefused(InvalidInput):
    """A step that torch refuses as well.

    Attributes:
        chain: what came before it.
        refused: the call, e.g. ``.view(2, 3)``.
        position: of its first character, counted from 1.
        view_refused: for a `view` that the strides forbid, which axes prevent it.
    """

    def __init__(self, chain: Chain, step: TensorCall | Index, cause: InvalidInput) -> None:
        super().__init__(f"expression, character {step.position}, {step.text}: {cause}")
        self.chain = chain
        self.refused = step.text
        self.position = step.position
        self.view_refused = cause if isinstance(cause, ViewRefused) else None

    def repaired(self, call: str) -> str:
        """Return the expression with `call` instead of the step that was refused."""
        expression, start = self.chain.expression, self.position - 1
        return expression[:start] + call + expression[start + len(self.refused) :]


def evaluate(expression: str) -> Chain:
    """Return every step of `expression`, e.g. ``x = 4x4; y = x.t(); x[0][0] = 100``.

    Raises:
        InvalidInput: it is not of the grammar; nothing has run then.
        StepRefused: torch refuses a step as well; it has what came before.
    """
    evaluation = _ChainBuilder(expression)
    for statement in read_expression(expression, METHODS):
        evaluation.carry_out(statement)
    return evaluation.chain()


class _ChainBuilder:
    """The tensors and the memory while statements are carried out."""

    def __init__(self, expression: str) -> None:
        self._expression = expression
        self._memory = _Memory()
        self._steps: list[ChainStep] = []
        self._names: dict[str, TensorView] = {}
        self._writes: list[ChainStep] = []

    def chain(self) -> Chain:
        """Return what became of the statements so far."""
        storages = self._memory.storages()
        return Chain(self._expression, tuple(self._steps), dict(self._names), storages, tuple(self._writes))

    def carry_out(self, statement: Statement) -> None:
        """Take the steps of a statement.

        Raises:
            StepRefused: one of them cannot be taken.
        """
        steps = (statement.start, *statement.steps)
        for step in steps:
            self._guarded(step, partial(self._take, step))
        if statement.target is not None:
            self._names[statement.target] = self._steps[-1].view
        if statement.written is not None:
            self._guarded(steps[-1], partial(self._write, statement))

    def _guarded(self, step: TensorCall | Index, act: Callable[[], None]) -> None:
        try:
            act()
        except InvalidInput as error:
            raise StepRefused(self.chain(), step, error) from error

    def _write(self, statement: Statement) -> None:
        view = self._steps[-1].view
        if has_overlap(view):
            raise InvalidInput.of("write to", "a broadcast axis", "tensors whose elements are cells of their own")
        self._memory.write(view, statement.written or 0.0)
        self._writes.append(ChainStep(view, "write", text=statement.text))

    def _take(self, step: TensorCall | Index) -> None:
        if len(self._steps) == MOST_STEPS:
            raise InvalidInput.of("expression of", f"more than {MOST_STEPS} steps", f"at most {MOST_STEPS}")
        if isinstance(step, TensorCall) and step.name == NAME:
            self._begin(step.text, self._named(step.text))
        elif isinstance(step, TensorCall) and step.name in STARTS:
            self._begin(step.text, self._made(step))
        else:
            self._append(step)

    def _begin(self, text: str, view: TensorView) -> None:
        self._steps.append(ChainStep(view, "start", text=text))

    def _append(self, step: TensorCall | Index) -> None:
        before = self._steps[-1]
        arguments = () if isinstance(step, Index) else self._resolved(step)
        taken = _step(before.view, step, arguments)
        view = taken.view
        _check_size(view.shape)
        if taken.kind == "copy":
            view = self._memory.copy(before.view, view)
        elif taken.kind == "result":
            view = self._memory.product(before.view, arguments[0], view)
        self._steps.append(replace(taken, view=view, text=before.text + step.text))

    def _resolved(self, call: TensorCall) -> tuple[Any, ...]:
        """Return the arguments of a call, a tensor for each name."""
        return tuple(self._named(value) if isinstance(value, str) else value for value in call.arguments)

    def _named(self, name: str) -> TensorView:
        if name not in self._names:
            raise InvalidInput.of("name", name, self._names or "none yet: name a tensor first, as in x = 4x4")
        return self._names[name]

    def _made(self, start: TensorCall) -> TensorView:
        shape, value_of = STARTS[start.name](_lengths(start))
        _check_size(shape)
        values = value_of if start.values is None else start.values
        return self._memory.new(TensorView(shape, row_order(shape)), values)


def _step(view: TensorView, step: TensorCall | Index, arguments: tuple[Any, ...]) -> ChainStep:
    if isinstance(step, Index):
        return ChainStep(indexed(view, step.items))
    method = METHODS[step.name]
    method.check(arguments)
    return method.apply(view, *arguments)


def _lengths(start: TensorCall) -> tuple[int, ...]:
    lengths = tuple(value for value in start.arguments if isinstance(value, int) and value >= 0)
    if len(lengths) != len(start.arguments):
        raise InvalidInput.of("lengths", ", ".join(map(str, start.arguments)), "whole numbers from 0")
    return lengths


def _check_size(shape: tuple[int, ...]) -> None:
    if len(shape) > MOST_AXES:
        raise InvalidInput.of("tensor of", f"{len(shape)} axes", f"at most {MOST_AXES}")
    if prod(shape) > MOST_ELEMENTS:
        raise InvalidInput.of("tensor of", f"{prod(shape):,} elements", f"at most {MOST_ELEMENTS:,}")


def _counted(lengths: tuple[int, ...]) -> Start:
    if len(lengths) not in (1, 2) or lengths[-1] < (0, *lengths)[-2]:
        raise InvalidInput.of("arange of", lengths, "arange(end) or arange(start, end), the start not above the end")
    first, end = (0, *lengths)[-2:]
    return (end - first,), lambda cell: first + cell


# what makes the first tensor of a chain: from its numbers, the shape and the value of each cell
STARTS: Mapping[str, Callable[[tuple[int, ...]], Start]] = {
    "arange": _counted,
    "shape": lambda lengths: (lengths, float),
    "tensor": lambda lengths: (lengths, float),
    "zeros": lambda lengths: (lengths, lambda _: 0.0),
    "ones": lambda lengths: (lengths, lambda _: 1.0),
}
