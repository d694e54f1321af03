"""Torch's printed form of a tensor: its layout, and the Python types of it and of its storage by dtype and device.

``x.type()`` and ``x.storage().type()`` name dtype and device in one word; ``torch.cuda`` is the CUDA form. Since torch
2 the storage behind every tensor is one class, ``torch.UntypedStorage``: bytes, and a device. ``x.storage()`` still
wraps it in a ``torch.storage.TypedStorage``, and warns: https://docs.pytorch.org/docs/stable/storage.html
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from gpuexplore.core.dtypes import DTYPES, DType
from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.tensors.analysis.value import Storage, TensorView

UNTYPED_CLASS = "torch.storage.UntypedStorage"
DEVICES: Mapping[str, str] = MappingProxyType(
    {"cpu": "device(type='cpu')", "cuda": "device(type='cuda', index=0)"}
)  # by kind
MODULES: Mapping[str, str] = MappingProxyType({"cpu": "torch", "cuda": "torch.cuda"})  # by kind of device
_WORDS: Mapping[str, str] = MappingProxyType(
    {"float64": "Double", "float32": "Float", "bfloat16": "BFloat16", "float16": "Half"}
)
# TF32 is no type of torch: it is computed inside matrix units from fp32
STORED: Mapping[str, DType] = MappingProxyType({name: dtype for name, dtype in DTYPES.items() if not dtype.matrix_only})


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
        ("x.device", DEVICES[kind]),
        ("x.type()", f"'{tensor_type}'"),
        ("x.storage().type()", f"'{type_name('Storage', dtype, kind)}'"),
        ("type(x.untyped_storage())", f"<class '{UNTYPED_CLASS}'>"),
        ("x.untyped_storage().nbytes()", str(storage.size * stored.itemsize_bytes)),
        ("x.requires_grad, x.is_leaf", "(False, True)"),
    )
