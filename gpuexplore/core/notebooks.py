"""Titles of the rows of the five teaching notebooks that gpuexplore grew from, by the code that lessons cite."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

TITLES: Mapping[str, str] = MappingProxyType(
    {
        "A1": "a matmul on CPU and GPU, compared with allclose",
        "A2": "CPU and GPU time, the clock read too early",
        "A3": "a convolution by cuDNN",
        "A4": "a matmul by cuBLAS, and its cost",
        "A5": "asynchronous execution, tensor cores, kernel selection",
        "B1": "the device and its storage types",
        "B2": "blocks, waves and the bounds check",
        "B3": "a vector addition in Numba",
        "B4": "a matrix-vector product in Numba that sums in float64",
        "B5": "the same products in torch, faster than any memory",
        "B6": "rounding, and the cost of fp64",
        "B7": "moving data to the GPU and back",
        "C1": "an element-wise product, and missing CUDA",
        "C2": "device-agnostic code; when transfers cost more than they gain",
        "C3": "a training loop",
        "C4": "what limits the size of a model",
        "D1": "moving tensors and models to a device",
        "D2": "mixed precision",
        "D3": "a full training loop on random labels",
        "D4": "several GPUs",
        "E1": "storage and strides",
        "E2": "contiguity, and view of a transpose",
        "E3": "a batched product",
        "E4": "correct timing, except for the mean",
        "E5": "a linear model and its FLOPs",
        "E6": "MFU, and the peak it is relative to",
        "E7": "MFU in bf16 on a card without bf16 units",
    }
)


def titles(rows: Iterable[str]) -> str:
    """Return the titles of rows as one text, e.g. "a convolution by cuDNN (A3)"; of other notebooks, the rows alone."""
    return "; ".join(f"{TITLES[row]} ({row})" if row in TITLES else row for row in rows)
