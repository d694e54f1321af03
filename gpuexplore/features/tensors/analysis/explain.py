"""Sentences about a chain: why `view` fails and what repairs it, what a write changes; and what torch prints.

``x.type()`` and ``x.storage().type()`` name dtype and device in one word; ``torch.cuda`` is the CUDA form. Since torch
2 the storage behind every tensor is one class, ``torch.UntypedStorage``: bytes, and a device. ``x.storage()`` still
wraps it in a ``torch.storage.TypedStorage``, and warns: https://docs.pytorch.org/docs/stable/storage.html
"""

from collections.abc import Mapping, Sequence
from itertools import starmap
from typing import Literal

from gpuexplore.core.dtypes import DTYPES, DType
from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.tensors.analysis import Chain, ChainStep, Indices, Storage, TensorView
from gpuexplore.features.tensors.analysis.operations import ViewRefused

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
    if dtype not in STORED:
        raise InvalidInput.of("dtype", dtype, STORED)
    if kind not in MODULES:
        raise InvalidInput.of("device", kind, MODULES)
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
