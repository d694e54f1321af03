"""From an expression to a chain and its storages: steps are arithmetic on strides, and typed text is never executed.

Sentences about a chain: why `view` fails and what repairs it, what a write changes; and what torch prints.

``x.type()`` and ``x.storage().type()`` name dtype and device in one word; ``torch.cuda`` is the CUDA form. Since torch
2 the storage behind every tensor is one class, ``torch.UntypedStorage``: bytes, and a device. ``x.storage()`` still
wraps it in a ``torch.storage.TypedStorage``, and warns: https://docs.pytorch.org/docs/stable/storage.html
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import repeat, starmap
from math import prod
from string import ascii_uppercase
from typing import Any, Literal

import numpy as np

from gpuexplore.core.dtypes import DTYPES, DType
from gpuexplore.core.errors import InvalidInput, check_known, require
from gpuexplore.features.tensors.analysis import MOST_LISTED, Chain, ChainStep, Indices, Storage, TensorView, row_order
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
    require(len(chain.steps) != most, "expression of", f"more than {most} steps", f"at most {most}")
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
    require(name in chain.names, "name", name, chain.names or "none yet: name a tensor first, as in x = 4x4")
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
    return _stored(chain, TensorView(shape, row_order(shape)), values.get(start.name))  # of the others, unknown


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
    require(len(shape) <= 8, "tensor of", f"{len(shape)} axes", "at most 8")
    most = 2**27  # 512 MiB in fp32: what fits a laptop
    if prod(shape) > most:
        raise InvalidInput.of("tensor of", f"{prod(shape):,} elements", f"at most {most:,}")


UNTYPED_CLASS = "torch.storage.UntypedStorage"
MODULES: Mapping[str, str] = {"cpu": "torch", "cuda": "torch.cuda"}  # by kind of device
_WORDS: Mapping[str, str] = {"float64": "Double", "float32": "Float", "bfloat16": "BFloat16", "float16": "Half"}
# TF32 is no type of torch: it is computed inside matrix units from fp32
STORED: Mapping[str, DType] = {name: dtype for name, dtype in DTYPES.items() if not dtype.matrix_only}


def why_view_fails(view: TensorView, refused: ViewRefused) -> tuple[str, ...]:
    """Return why `view` in that shape fails on a tensor, in sentences."""
    return (
        f"The shape {words(refused.shape)} needs axes {refused.outer} and {refused.inner} of {words(view.shape)} "
        "merged into one axis.",
        f"Axes from {refused.inner} on have {refused.run_length} elements, {refused.run_stride} cells apart. To "
        f"continue them, axis {refused.outer} would need a stride of "
        f"{refused.run_length} × {refused.run_stride} = {refused.run_length * refused.run_stride}; "
        f"it has {refused.stride}.",
        "An axis has only one stride, and view never copies, so it raises an error.",
    )


def repairs(refused: ViewRefused) -> tuple[str, str]:
    """Return the two calls that do what `view` cannot: both copy."""
    shape = ", ".join(map(str, refused.shape))
    return f".contiguous().view({shape})", f".reshape({shape})"


def write_sentences(chain: Chain, write: ChainStep) -> tuple[str, ...]:
    """Return what a write changes: the cells, and what each named tensor sees of it."""
    seen = chain.seen_of(write)
    if seen is None:
        return (f"It changes {write.view.element_count:,} cells of storage {write.view.storage}.",)
    cells = sorted(set(write.view.cells.flat))
    listed = _listed([str(cell) for cell in cells])
    changed = f"cell {listed}" if len(cells) == 1 else f"{len(cells)} cells: {listed}"
    names = {view.storage for view in chain.names.values()}
    lost = (
        () if write.view.storage in names else ("No named tensor uses that storage: the write has no visible effect.",)
    )
    return (f"It changes {changed} of storage {write.view.storage}.", *starmap(_sight, seen.items()), *lost)


def _sight(name: str, seen: Sequence[Indices] | None) -> str:
    if seen is None:
        return f"{name} has its own storage: unchanged."
    if not seen:
        return f"{name} shares the storage, but has none of these cells."
    elements = _listed([f"[{', '.join(map(str, indices))}]" if indices else "its value" for indices in seen])
    return f"{name} sees it at {elements}."


def words(lengths: Sequence[int]) -> str:
    """Return a shape or strides as Python writes them: ``(4, 4)``, ``(4,)``."""
    return f"({', '.join(map(str, lengths))}{',' if len(lengths) == 1 else ''})"


def _listed(names: Sequence[str]) -> str:
    more = len(names) - 8
    return ", ".join(names[:8]) + (f" and {more} more" if more > 0 else "")


def type_name(of: Literal["Tensor", "Storage"], dtype: str, kind: str) -> str:
    """Return the type of a tensor of `dtype` on a device of that kind, or of its storage.

    Args:
        of: for ``x.type()``, or for ``x.storage().type()``, such as the notebooks' ``torch.FloatStorage``.
        dtype: a key of STORED.
        kind: a key of MODULES.

    Raises:
        InvalidInput: no such dtype or kind.
    """
    check_known("dtype", dtype, STORED)
    check_known("device", kind, MODULES)
    return f"{MODULES[kind]}.{_WORDS[STORED[dtype].array_name]}{of}"


def printed(view: TensorView, storage: Storage, dtype: str, kind: str) -> tuple[tuple[str, str], ...]:
    """Return calls on a tensor called x, and what each prints where x is on a device of that kind.

    Args:
        storage: the one that `view` looks at.
        dtype: a key of STORED.
        kind: a key of MODULES.

    Raises:
        InvalidInput: no such dtype or kind.
    """
    tensor_type = type_name("Tensor", dtype, kind)
    stored = STORED[dtype]
    return (
        ("x.shape", f"torch.Size([{', '.join(map(str, view.shape))}])"),
        ("x.stride()", str(view.strides)),
        ("x.storage_offset()", str(view.offset)),
        ("x.is_contiguous()", str(view.is_contiguous)),
        ("x.dtype", f"torch.{stored.array_name}"),
        ("x.device", {"cpu": "device(type='cpu')", "cuda": "device(type='cuda', index=0)"}[kind]),
        ("x.type()", f"'{tensor_type}'"),
        ("x.storage().type()", f"'{type_name('Storage', dtype, kind)}'"),
        ("type(x.untyped_storage())", f"<class '{UNTYPED_CLASS}'>"),
        ("x.untyped_storage().nbytes()", str(storage.size * stored.itemsize_bytes)),
        ("x.requires_grad, x.is_leaf", "(False, True)"),
    )
