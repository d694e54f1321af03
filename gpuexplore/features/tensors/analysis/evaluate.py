"""From an expression to a chain and its storages: steps are arithmetic on strides, and typed text is never executed."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import repeat
from math import prod
from string import ascii_uppercase
from typing import Any

import numpy as np

from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.tensors.analysis import MOST_LISTED, Chain, ChainStep, Storage, TensorView, row_order
from gpuexplore.features.tensors.analysis.expression import FUNCTIONS, TensorCall, read_expression
from gpuexplore.features.tensors.analysis.operations import METHODS, ViewRefused, called, indexed


class StepRefused(InvalidInput):
    """A step that torch refuses as well.

    Attributes:
        chain: what came before it.
        refused: the call, e.g. ``.view(2, 3)``.
        position: of its first character, counted from 1.
        view_refused: for a `view` that the strides forbid, which axes prevent it.
    """

    def __init__(self, chain: Chain, step: TensorCall, cause: InvalidInput) -> None:
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
    chain = Chain(expression)
    for step in read_expression(expression, METHODS):
        try:
            _take(chain, step)
        except InvalidInput as error:
            raise StepRefused(chain, step, error) from error
    return chain


def _take(chain: Chain, step: TensorCall) -> None:
    """Add a step to its chain, or do what a statement does with the result: name it, or write to it."""
    if step.name == "assign":
        chain.names[step.arguments[0]] = chain.result
        return
    if step.name == "write":
        _write(chain, *step.arguments)
        return
    most = 64
    if len(chain.steps) == most:
        raise InvalidInput.of("expression of", f"more than {most} steps", f"at most {most}")
    if step.name == "name":
        taken = ChainStep(_named(chain, step.text), "start")
    elif step.name in (*FUNCTIONS, "shape"):
        taken = ChainStep(_made(chain, step), "start")
    elif step.name == "index":
        taken = ChainStep(indexed(chain.result, step.arguments))
    else:
        taken = _called(chain, step)
    _check_size(taken.view.shape)
    chain.steps.append(replace(taken, text=step.text if taken.kind == "start" else chain.steps[-1].text + step.text))


def _write(chain: Chain, written: float, text: str) -> None:
    view = chain.result
    if view.element_count and any(stride == 0 and length > 1 for length, stride in view.pairs):
        raise InvalidInput.of("write to", "a broadcast axis", "tensors whose elements do not share cells")
    storage = chain.storages[view.storage]
    if storage.values is not None:
        cells = np.array(storage.values, object)
        cells[view.cells] = written or 0.0
        chain.storages[view.storage] = replace(storage, values=tuple(cells))
    chain.writes.append(ChainStep(view, "write", text=text))


def _called(chain: Chain, step: TensorCall) -> ChainStep:
    view = chain.result
    arguments = [_named(chain, value) if isinstance(value, str) else value for value in step.arguments]
    taken = called(step.name, view, arguments)
    if taken.kind not in ("copy", "result"):
        return taken
    values: Any = chain.values_of(view)
    if taken.kind == "result":
        second = chain.values_of(arguments[0])
        if values is None or second is None or view.element_count * taken.view.shape[1] > MOST_LISTED:
            values = None
        else:
            left, right = (
                np.array(few, object).reshape(of.shape) for few, of in ((values, view), (second, arguments[0]))
            )
            values = (left @ right).ravel()
    return replace(taken, view=_stored(chain, taken.view, values))


def _named(chain: Chain, name: str) -> TensorView:
    if name not in chain.names:
        raise InvalidInput.of("name", name, chain.names or "none yet: name a tensor first, as in x = 4x4")
    return chain.names[name]


def _made(chain: Chain, start: TensorCall) -> TensorView:
    """Return the tensor that a chain begins with, over new storage."""
    if start.name == "tensor":
        (values,) = start.arguments
        return _stored(chain, TensorView(values.shape, row_order(values.shape)), values.ravel().tolist())
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
    count = prod(shape)
    values = {
        "arange": range(first, first + count),
        "shape": map(float, range(count)),
        "ones": repeat(1.0, count),
        "zeros": repeat(0.0, count),
    }
    return _stored(chain, TensorView(shape, row_order(shape)), values[start.name])


def _stored(chain: Chain, view: TensorView, values: Iterable[float] | None) -> TensorView:
    """Return `view` over new storage; its elements in row order are kept where they are few."""
    _check_size(view.shape)
    cycle, letter = divmod(len(chain.storages), len(ascii_uppercase))
    name = ascii_uppercase[letter] + (str(cycle) if cycle else "")
    kept = None
    if values is not None and view.element_count <= MOST_LISTED:
        kept = tuple(value for _, value in sorted(zip(view.cells.flat, values, strict=True)))
    chain.storages[name] = Storage(name, view.element_count, kept)
    return replace(view, storage=name)


def _check_size(shape: tuple[int, ...]) -> None:
    if len(shape) > 8:
        raise InvalidInput.of("tensor of", f"{len(shape)} axes", "at most 8")
    most = 2**27  # 512 MiB in fp32: what fits a laptop
    if prod(shape) > most:
        raise InvalidInput.of("tensor of", f"{prod(shape):,} elements", f"at most {most:,}")
