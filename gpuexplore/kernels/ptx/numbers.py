"""Types of numbers, registers as rows of them for a warp, and arithmetic that is exact until it is rounded once.

A sum is rounded to odd where it is not exact: its last bit then says so, and a second rounding to fewer bits, in any
mode, gives what one rounding would have given. S. Boldo, G. Melquiond, "Emulation of FMA and correctly rounded sums:
proved algorithms using rounding to odd", IEEE Transactions on Computers 57 (2008).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from gpuexplore.core.errors import Unsupported
from gpuexplore.kernels.geometry import WARP

LANES = WARP
Values = np.typing.NDArray[Any]  # one element for each lane
Doubles = np.typing.NDArray[np.float64]


@dataclass(frozen=True)
class Scalar:
    """A type such as `f32`: its letter (`f`, `s`, `u`, `b`, or `p` for a predicate) and its bits."""

    name: str
    letter: str
    bits: int

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype that stores it: unsigned integers for bits, bf16 and tf32, which NumPy does not have."""
        if self.letter == "p":
            return np.dtype(np.bool_)
        if self.name in ("f16", "f32", "f64"):
            return np.dtype(f"f{self.bits // 8}")
        return np.dtype(f"{'i' if self.letter == 's' else 'u'}{self.bits // 8}")

    @property
    def is_float(self) -> bool:
        """True for a floating-point type with arithmetic."""
        return self.name in ("f16", "bf16", "f32", "f64")


@lru_cache
def scalar(name: str) -> Scalar:
    """Return the type called `name`, e.g. `s64`.

    Raises:
        Unsupported: there is none, or it holds several numbers.
    """
    if name == "pred":
        return Scalar(name, "p", 1)
    if name in ("bf16", "tf32"):
        return Scalar(name, "f", 16 if name == "bf16" else 32)
    found = re.fullmatch(r"([fsub])(8|16|32|64)", name)
    if found is None or name == "f8":
        raise Unsupported(f"the type .{name}")
    return Scalar(name, found.group(1), int(found.group(2)))


def widened(kind: Scalar, values: Values) -> Doubles:
    """Return floating-point numbers exactly, as float64."""
    if kind.name == "bf16":
        values = (values.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return values.astype(np.float64)


class RegisterFile:
    """Gives each pair of a register and a type a slot, while a kernel is decoded; then makes the slots of warps."""

    def __init__(self, declared: Mapping[str, str]) -> None:
        self._kinds = {name: scalar(kind) for name, kind in declared.items()}
        self._rows: dict[str, tuple[np.dtype[Any], int]] = {}
        heights: dict[np.dtype[Any], int] = {}
        for name, kind in self._kinds.items():
            bits = kind.dtype if kind.letter == "p" else np.dtype(f"u{kind.bits // 8}")
            self._rows[name] = bits, heights.get(bits, 0)
            heights[bits] = heights.get(bits, 0) + 1
        self._heights = heights
        self._slots: dict[tuple[str, np.dtype[Any]], int] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._kinds

    def kind(self, name: str) -> Scalar:
        """Return the declared type of a register."""
        return self._kinds[name]

    def slot(self, name: str, dtype: np.dtype[Any]) -> int:
        """Return where warps keep a register seen as `dtype`: of a wider register its low bits."""
        return self._slots.setdefault((name, dtype), len(self._slots))

    def slots(self) -> list[Values]:
        """Return the registers of one more warp, zero in every lane."""
        memory = {bits: np.zeros((height, LANES), bits) for bits, height in self._heights.items()}
        slots = []
        for name, dtype in self._slots:
            bits, row = self._rows[name]
            slots.append(memory[bits][row].view(dtype)[:: bits.itemsize // dtype.itemsize])
        return slots


def _two_sum(a: Doubles, b: Doubles) -> tuple[Doubles, Doubles]:
    """Return the rounded sum and its exact error (D. E. Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _halves(values: Doubles) -> tuple[Doubles, Doubles]:
    scaled = values * (2.0**27 + 1)
    high = scaled - (scaled - values)
    return high, values - high


def _odd_sum(a: Doubles, b: Doubles) -> Doubles:
    """Return the sum rounded to odd."""
    total, error = _two_sum(a, b)
    inexact = np.isfinite(total) & (error != 0)
    if not inexact.any():
        return total
    even = (total.view(np.int64) & 1) == 0
    towards = np.where(error > 0, np.inf, -np.inf)
    return np.where(inexact & even, np.nextafter(total, towards), total)


def _stepped(near: Values, error: Values, mode: str) -> Values:
    """Return numbers rounded in `mode`, from those rounded to nearest; `error`: the exact less the rounded number."""
    if mode == "rn":
        return near
    infinity = near.dtype.type(np.inf)
    down = (error < 0) & ((mode == "rm") | ((mode == "rz") & ((near > 0) | np.isposinf(near))))
    up = (error > 0) & ((mode == "rp") | ((mode == "rz") & (near < 0)))
    return np.where(down, np.nextafter(near, -infinity), np.where(up, np.nextafter(near, infinity), near))


def narrowed(kind: Scalar, exact: Doubles, mode: str = "rn") -> Values:
    """Return float64 numbers, exact or rounded to odd, rounded once to a type in its storage."""
    if kind.name == "bf16":
        # Round by whole numbers: in the bits of an fp32, the next bf16 is 2**16 further
        single = exact.astype(np.float32)
        single = _stepped(single, exact - single, "rz")
        sticky = (single.astype(np.float64) != exact) & np.isfinite(exact)
        bits = single.view(np.uint32) | sticky.astype(np.uint32)
        kept = bits >> np.uint32(16)
        rest = bits & np.uint32(0xFFFF)
        negative = (bits >> np.uint32(31)) == 1
        up = {
            "rn": (rest > 0x8000) | ((rest == 0x8000) & (kept & 1 == 1)),
            "rz": np.zeros(bits.shape, np.bool_),
            "rm": negative & (rest != 0),
            "rp": ~negative & (rest != 0),
        }[mode]
        rounded = kept + up.astype(np.uint32)
        return np.where(np.isnan(exact), 0x7FFF, np.where(np.isinf(exact), kept, rounded)).astype(np.uint16)
    near = exact.astype(kind.dtype)
    return near if mode == "rn" else _stepped(near, exact - near.astype(np.float64), mode)


def rounded_sum(kind: Scalar, a: Doubles, b: Doubles, mode: str) -> Values:
    """Return the sum of float64 numbers, rounded once to a type in `mode`."""
    if kind.name != "f64":
        return narrowed(kind, _odd_sum(a, b), mode)
    total, error = _two_sum(a, b)
    return _stepped(total, np.where(np.isfinite(a) & np.isfinite(b), error, 0.0), mode)


def rounded_product(kind: Scalar, a: Values, b: Values, mode: str) -> Values:
    """Return a × b of numbers of a type, rounded once to it in `mode`."""
    if kind.name != "f64":
        return narrowed(kind, widened(kind, a) * widened(kind, b), mode)
    return _double_fma(a, b, np.where(a * b == 0, a * b, 0.0), mode)


def rounded_fma(kind: Scalar, a: Values, b: Values, c: Values, mode: str) -> Values:
    """Return a × b + c of numbers of a type, rounded once to it in `mode`."""
    if kind.name == "f64":
        return _double_fma(a, b, c, mode)
    if kind.name == "f32" and mode == "rn":
        product = a.astype(np.float64) * b
        addend = c.astype(np.float64)
        total = product + addend
        bits = total.view(np.int64)
        is_tie = bits & 0x1FFFFFFF == 0x10000000  # of the bits that do not fit a float32
        is_subnormal = bits & 0x7FF << 52 < 1023 - 125 << 52  # as float32
        if is_tie.any() or is_subnormal.any():
            total = _odd_sum(product, addend)
        return total.astype(np.float32)
    exact = widened(kind, a) * widened(kind, b)  # 48 bits at most
    return narrowed(kind, _odd_sum(exact, widened(kind, c)), mode)


def _double_fma(a: Doubles, b: Doubles, c: Doubles, mode: str) -> Doubles:
    plain = a * b + c
    exact = (a == 0) | (b == 0) | ~np.isfinite(a) | ~np.isfinite(b) | ~np.isfinite(c)
    far = ~exact & (_far(a) | _far(b) | ((c != 0) & _far(c)))
    # The rounded product and its exact error (T. J. Dekker); for numbers of moderate size.
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    high = a * b
    low = ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low
    middle, rest = _two_sum(c, low)
    top, below = _two_sum(high, middle)
    tail = _odd_sum(rest, below)
    total, error = _two_sum(top, tail)
    found = np.where(exact, plain, _stepped(total, error, mode))
    for lane in np.flatnonzero(far):
        found[lane] = _fraction_fma(float(a[lane]), float(b[lane]), float(c[lane]), mode)
    return found


def _far(values: Doubles) -> np.typing.NDArray[np.bool_]:
    """Return where a step of a product in two parts may overflow or underflow."""
    size = np.abs(values)
    return (size > 2.0**400) | (size < 2.0**-400)


def _fraction_fma(a: float, b: float, c: float, mode: str) -> float:
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        near = float(exact)
    except OverflowError:
        near = np.inf if exact > 0 else -np.inf
        return float(_stepped(np.array(near), np.array(-near), mode))
    error = exact - Fraction(near) if np.isfinite(near) else Fraction(0)
    return float(_stepped(np.array(near), np.array((error > 0) - (error < 0)), mode))
