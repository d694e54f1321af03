"""The number formats, one row each: adding one is adding a row."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuexplore.core.errors import InvalidInput

Stored = np.typing.NDArray[Any]
FP32_SIGNIFICAND_BITS = 24


@dataclass(frozen=True, slots=True)
class DType:
    """A number format.

    Attributes:
        name: what users type.
        array_name: what array libraries call the type that stores it.
        bits: bits that are stored; TF32 is stored in 32 and computed with 19.
        significand_bits: precision p with the hidden bit, so that the unit roundoff is 2**-p.
        accumulate: the dtype sums are kept in.
        about: one sentence for a reader.
        matrix_only: exists only in matrix units (no element-wise arithmetic).
        cut_from_fp32: an fp32 with low significand bits rounded off.
        largest: the largest value, of formats that products of usual numbers can overflow.
        also: further names that people type.
        output_format: of its products' outputs, and of operations it does not exist for; None: itself.
    """

    name: str
    array_name: str
    bits: int
    significand_bits: int
    accumulate: str
    about: str
    matrix_only: bool = False
    cut_from_fp32: bool = False
    output_format: str | None = None
    largest: float | None = None
    also: tuple[str, ...] = ()

    @property
    def storage(self) -> np.dtype:
        """The NumPy dtype that holds it: unsigned integers for a format NumPy does not know."""
        known_to_numpy = not self.cut_from_fp32 or self.bits == 32
        return np.dtype(self.array_name if known_to_numpy else f"uint{self.bits}")

    @property
    def itemsize_bytes(self) -> int:
        """Bytes of one stored element."""
        return self.bits // 8

    @property
    def unit_roundoff(self) -> float:
        """Largest relative error of rounding one number to the nearest: 2**-p."""
        return 2.0**-self.significand_bits

    @property
    def smallest_normal(self) -> float:
        """The smallest number with all significand bits."""
        return float(self._limits.smallest_normal)

    @property
    def underflow(self) -> float:
        """Largest error of rounding a subnormal number, which may become 0 except in fp16, which has few."""
        return float(self._limits.smallest_subnormal if self.largest else self._limits.smallest_normal)

    @property
    def _limits(self) -> Any:
        return np.finfo(self.storage if self.storage.kind == "f" else np.float32)

    def round(self, values: np.typing.NDArray[np.floating[Any]]) -> Stored:
        """Return `values` rounded to nearest even in this format, in its storage."""
        if not self.cut_from_fp32:
            return values.astype(self.storage)
        kept = _rounded_bits(values.astype(np.float32), FP32_SIGNIFICAND_BITS - self.significand_bits)
        return (kept >> np.uint32(32 - self.bits)).astype(f"uint{self.bits}").view(self.storage)

    def widen(self, stored: Stored) -> np.typing.NDArray[np.float64]:
        """Return numbers in this format's storage as float64, exactly."""
        if self.storage.kind == "f":
            return stored.astype(np.float64)
        widened = (stored.astype(np.uint32) << np.uint32(32 - self.bits)).view(np.float32)
        with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
            return widened.astype(np.float64)


def _rounded_bits(values: np.typing.NDArray[np.float32], count: int) -> np.typing.NDArray[np.uint32]:
    """Return the bits of `values` (finite) rounded to nearest even so that the last `count` are zero."""
    bits = values.view(np.uint32)
    half_below = np.uint32((1 << (count - 1)) - 1)
    last_kept = (bits >> np.uint32(count)) & np.uint32(1)
    return (bits + half_below + last_kept) & np.uint32(0xFFFFFFFF << count & 0xFFFFFFFF)


_ROWS = (
    DType(
        "fp64",
        "float64",
        64,
        53,
        "fp64",
        "double precision: 11-bit exponent, 53-bit significand",
        also=("double", "f64"),
    ),
    DType(
        "fp32",
        "float32",
        32,
        24,
        "fp32",
        "single precision: 8-bit exponent, 24-bit significand",
        also=("float", "single", "f32"),
    ),
    DType(
        "tf32",
        "float32",
        32,
        11,
        "fp32",
        "TensorFloat-32: fp32's range with 11 significand bits, inside NVIDIA's tensor cores only",
        matrix_only=True,
        cut_from_fp32=True,
        output_format="fp32",
        also=("tensorfloat32",),
    ),
    DType("bf16", "bfloat16", 16, 8, "fp32", "bfloat16: fp32's range with 8 significand bits", cut_from_fp32=True),
    DType(
        "fp16",
        "float16",
        16,
        11,
        "fp32",
        "half precision: 11 significand bits, up to 65504",
        largest=65504.0,
        also=("half", "f16"),
    ),
)
DTYPES: dict[str, DType] = {row.name: row for row in _ROWS}
UNKNOWN_DTYPE = DType("unknown", "float64", 64, 53, "unknown", "not named in the benchmark's file")
FORMATS: dict[str, DType] = DTYPES | {
    "fp8": DType(  # a dtype with peaks, but without kernels here
        "fp8",
        "float8_e4m3fn",
        8,
        4,
        "fp32",
        "8-bit floating point, E4M3: up to 448",
        matrix_only=True,
        output_format="bf16",
        largest=448.0,
        also=("float8", "f8", "e4m3", "fp8e4m3", "fp8e4m3fn", "float8e4m3"),
    )
}


_SPELLINGS = {
    name.casefold().replace("_", ""): row.name
    for row in FORMATS.values()
    for name in (row.name, *(() if row.matrix_only and row.cut_from_fp32 else (row.array_name,)), *row.also)
}


def spelled(name: str) -> str:
    """Return our name of a dtype: fp16 for float16, half and torch.float16; any other text as it is."""
    spelling = re.sub(r"^(torch|np|numpy|jnp)\.|[_-]", "", name.strip().casefold())
    return _SPELLINGS.get(spelling, name)


def format_named(name: str) -> DType:
    """Return the row called `name`, of a dtype that is measured or one that is only predicted.

    Raises:
        InvalidInput: no such format.
    """
    found = FORMATS.get(name) or FORMATS.get(spelled(name))
    if found is None:
        raise InvalidInput.of("dtype", name, FORMATS)
    return found


def dtype_named(name: str) -> DType:
    """Return the row called `name`, of a dtype that is measured, or that of benchmarks of others.

    Raises:
        InvalidInput: no such dtype.
    """
    if name == UNKNOWN_DTYPE.name:
        return UNKNOWN_DTYPE
    if spelled(name) not in DTYPES:
        raise InvalidInput.of("dtype", name, DTYPES)
    return DTYPES[spelled(name)]
