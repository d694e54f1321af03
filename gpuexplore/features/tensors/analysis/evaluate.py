"""From an expression to a chain and its storages: steps are arithmetic on strides, and typed text is never executed."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from string import ascii_uppercase
from typing import Any

import numpy as np
import numpy.typing as npt

from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.tensors.analysis import MOST_LISTED, Chain, ChainStep, Storage, TensorView, row_order
from gpuexplore.features.tensors.analysis.expression import FUNCTIONS, Index, Statement, TensorCall, read_expression
from gpuexplore.features.tensors.analysis.operations import METHODS, ViewRefused, called, indexed

Cells = npt.NDArray[np.object_]  # numbers as they were typed: whole ones stay whole


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
        start = self.position - 1
        return self.chain.expression[:start] + call + self.chain.expression[start + len(self.refused) :]


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
    """The tensors and their cells while statements are carried out."""

    def __init__(self, expression: str) -> None:
        self._expression = expression
        self._sizes: dict[str, int] = {}  # of storages by name: A is the first that was made
        self._cells: dict[str, Cells | None] = {}
        self._steps: list[ChainStep] = []
        self._names: dict[str, TensorView] = {}
        self._writes: list[ChainStep] = []

    def chain(self) -> Chain:
        """Return what became of the statements so far."""
        storages = {
            name: Storage(name, self._sizes[name], None if cells is None else tuple(cells))
            for name, cells in self._cells.items()
        }
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
        if _has_overlap(view):
            raise InvalidInput.of("write to", "a broadcast axis", "tensors whose elements do not share cells")
        cells = self._cells[view.storage]
        if cells is not None:
            cells[view.cells] = statement.written or 0.0
        self._writes.append(ChainStep(view, "write", text=statement.text))

    def _take(self, step: TensorCall | Index) -> None:
        most = 64
        if len(self._steps) == most:
            raise InvalidInput.of("expression of", f"more than {most} steps", f"at most {most}")
        if isinstance(step, TensorCall) and step.name == "name":
            self._steps.append(ChainStep(self._named(step.text), "start", text=step.text))
        elif isinstance(step, TensorCall) and step.name in (*FUNCTIONS, "shape"):
            self._steps.append(ChainStep(self._made(step), "start", text=step.text))
        else:
            self._append(step)

    def _append(self, step: TensorCall | Index) -> None:
        before = self._steps[-1]
        arguments: tuple[Any, ...] = ()
        if isinstance(step, Index):
            taken = ChainStep(indexed(before.view, step.items))
        else:
            arguments = tuple(self._named(value) if isinstance(value, str) else value for value in step.arguments)
            taken = called(step.name, before.view, arguments)
        _check_size(taken.view.shape)
        view = taken.view
        if taken.kind == "copy":
            view = self._copied(before.view, view)
        elif taken.kind == "result":
            view = self._product(before.view, arguments[0], view)
        self._steps.append(replace(taken, view=view, text=before.text + step.text))

    def _named(self, name: str) -> TensorView:
        if name not in self._names:
            raise InvalidInput.of("name", name, self._names or "none yet: name a tensor first, as in x = 4x4")
        return self._names[name]

    def _made(self, start: TensorCall) -> TensorView:
        shape = tuple(value for value in start.arguments if isinstance(value, int) and value >= 0)
        if len(shape) != len(start.arguments):
            raise InvalidInput.of("lengths", ", ".join(map(str, start.arguments)), "whole numbers from 0")
        first = 0
        if start.name == "arange":
            if len(shape) not in (1, 2) or shape[-1] < (0, *shape)[-2]:
                accepted = "arange(end) or arange(start, end), the start not above the end"
                raise InvalidInput.of("arange of", shape, accepted)
            first = (0, *shape)[-2]
            shape = (shape[-1] - first,)
        _check_size(shape)
        count = prod(shape)
        cells = None
        if count <= MOST_LISTED:
            if start.name == "tensor":
                values: Sequence[float] = start.values or ()
            elif start.name == "arange":
                values = range(first, first + count)
            elif start.name == "shape":
                values = [float(cell) for cell in range(count)]
            else:
                values = [float(start.name == "ones")] * count
            cells = np.array(values, object)
        return self._stored(TensorView(shape, row_order(shape)), cells)

    def _copied(self, source: TensorView, target: TensorView) -> TensorView:
        """Return `target` over new storage, its elements those of `source` in row order."""
        kept = self._cells[source.storage]
        if kept is None or target.element_count > MOST_LISTED:
            return self._stored(target, None)
        cells = np.full(target.element_count, 0.0, object)
        cells[target.cells.ravel()] = kept[source.cells.ravel()]
        return self._stored(target, cells)

    def _product(self, left: TensorView, right: TensorView, target: TensorView) -> TensorView:
        """Return `target` over new storage, its elements the matrix product of two tensors, where they are few."""
        first = self._cells[left.storage]
        second = self._cells[right.storage]
        sizes = (left.element_count, right.element_count, target.element_count, target.element_count * left.shape[1])
        if first is None or second is None or max(sizes) > MOST_LISTED:
            return self._stored(target, None)
        return self._stored(target, (first[left.cells] @ second[right.cells]).ravel())

    def _stored(self, view: TensorView, cells: Cells | None) -> TensorView:
        cycle, letter = divmod(len(self._sizes), len(ascii_uppercase))
        name = ascii_uppercase[letter] + (str(cycle) if cycle else "")
        self._sizes[name] = view.element_count
        self._cells[name] = cells
        return replace(view, storage=name, offset=0)


def _has_overlap(view: TensorView) -> bool:
    """Return whether elements share a cell because an axis is broadcast: torch refuses to write to such a tensor."""
    axes = zip(view.shape, view.strides, strict=True)
    return view.element_count > 0 and any(stride == 0 and length > 1 for length, stride in axes)


def _check_size(shape: tuple[int, ...]) -> None:
    if len(shape) > 8:
        raise InvalidInput.of("tensor of", f"{len(shape)} axes", "at most 8")
    most = 2**27  # 512 MiB in fp32: what fits a laptop
    if prod(shape) > most:
        raise InvalidInput.of("tensor of", f"{prod(shape):,} elements", f"at most {most:,}")
