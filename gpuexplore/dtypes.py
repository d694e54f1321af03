"""The number formats, one row each: adding one is adding a row."""

from dataclasses import dataclass

import ml_dtypes
import numpy as np
import numpy.typing as npt

from gpuexplore.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class DType:
    """A number format.

    Attributes:
        name: what users type.
        bits: bits that are stored; TF32 is stored in 32 and computed with 19.
        significand_bits: precision p with the hidden bit, so that the unit roundoff is 2**-p.
        numpy: the NumPy dtype that stores it.
        accumulate: the dtype sums are kept in.
        matrix_only: exists only in matrix units (no element-wise arithmetic).
        about: one sentence for a reader.
    """

    name: str
    bits: int
    significand_bits: int
    numpy: np.dtype
    accumulate: str
    about: str
    matrix_only: bool = False

    @property
    def itemsize_bytes(self) -> int:
        """Bytes of one stored element."""
        return self.bits // 8

    @property
    def unit_roundoff(self) -> float:
        """Largest relative error of rounding one number to the nearest: 2**-p."""
        return 2.0**-self.significand_bits

    def round(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.generic]:
        """Return `values` rounded to nearest even in this format, in its NumPy storage."""
        stored = values.astype(self.numpy)
        unused = ml_dtypes.finfo(self.numpy).nmant + 1 - self.significand_bits
        return _without_low_bits(stored, unused) if unused else stored


def _without_low_bits(values: npt.NDArray[np.generic], count: int) -> npt.NDArray[np.generic]:
    """Round float32 `values` so that the last `count` stored significand bits are zero."""
    bits = values.view(np.uint32)
    half_below, last_kept = np.uint32((1 << (count - 1)) - 1), (bits >> np.uint32(count)) & np.uint32(1)
    return ((bits + half_below + last_kept) & np.uint32(0xFFFFFFFF << count & 0xFFFFFFFF)).view(np.float32)


_ROWS = (
    DType("fp64", 64, 53, np.dtype(np.float64), "fp64", "double precision: 11-bit exponent, 53-bit significand"),
    DType("fp32", 32, 24, np.dtype(np.float32), "fp32", "single precision: 8-bit exponent, 24-bit significand"),
    DType(
        "tf32",
        32,
        11,
        np.dtype(np.float32),
        "fp32",
        "TensorFloat-32: fp32's range with 11 significand bits, inside NVIDIA's tensor cores only",
        matrix_only=True,
    ),
    DType("bf16", 16, 8, np.dtype(ml_dtypes.bfloat16), "fp32", "bfloat16: fp32's range with 8 significand bits"),
    DType("fp16", 16, 11, np.dtype(np.float16), "fp32", "half precision: 11 significand bits, largest value 65504"),
)
DTYPES: dict[str, DType] = {row.name: row for row in _ROWS}


def dtype_named(name: str) -> DType:
    """Return the row called `name`.

    Raises:
        InvalidInput: no such dtype.
    """
    if name not in DTYPES:
        raise InvalidInput.of("dtype", name, DTYPES)
    return DTYPES[name]
