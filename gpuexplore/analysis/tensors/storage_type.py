"""The Python types of a tensor and its storage, as torch prints them, by dtype and kind of device.

``x.type()`` and ``x.storage().type()`` name dtype and device in one word; ``torch.cuda`` is the CUDA form. Since torch
2 the storage behind every tensor is one class, ``torch.UntypedStorage``: bytes, and a device. ``x.storage()`` still
wraps it in a ``torch.storage.TypedStorage``, and warns: https://docs.pytorch.org/docs/stable/storage.html
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from gpuexplore.dtypes import DTYPES, DType
from gpuexplore.errors import InvalidInput

UNTYPED, TYPED = "torch.UntypedStorage", "torch.storage.TypedStorage"
MODULES: Mapping[str, str] = MappingProxyType({"cpu": "torch", "cuda": "torch.cuda"})  # by kind of device
_WORDS: Mapping[str, str] = MappingProxyType(
    {"float64": "Double", "float32": "Float", "bfloat16": "BFloat16", "float16": "Half"}
)
# TF32 is no type of torch: it is computed inside matrix units from fp32
STORED: Mapping[str, DType] = MappingProxyType({name: dtype for name, dtype in DTYPES.items() if not dtype.matrix_only})


@dataclass(frozen=True, slots=True)
class StorageType:
    """What torch prints.

    Attributes:
        tensor: of ``x.type()``.
        storage: of ``x.storage().type()``; the notebooks' ``torch.FloatStorage``.
    """

    tensor: str
    storage: str


def storage_type(dtype: str, kind: str) -> StorageType:
    """Return the types of a tensor of `dtype` on a device of that kind.

    Args:
        dtype: a key of STORED.
        kind: a key of MODULES.

    Raises:
        InvalidInput: no such dtype or kind.
    """
    if dtype not in STORED:
        raise InvalidInput.of("dtype", dtype, STORED)
    if kind not in MODULES:
        raise InvalidInput.of("device", kind, MODULES)
    word = f"{MODULES[kind]}.{_WORDS[STORED[dtype].array_name]}"
    return StorageType(f"{word}Tensor", f"{word}Storage")
