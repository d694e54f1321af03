"""Floating-point arithmetic with PTX's rounding modes, exact in float64 before it is rounded once.

A sum is rounded to odd where it is not exact: its last bit then says so, and a second rounding to fewer bits, in any
mode, gives what one rounding would have given. S. Boldo, G. Melquiond, "Emulation of FMA and correctly rounded sums:
proved algorithms using rounding to odd", IEEE Transactions on Computers 57 (2008).
"""

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from gpuexplore.kernels.ptx.registers import Scalar, Values

Doubles = npt.NDArray[np.float64]
MODES = ("rn", "rz", "rm", "rp")
_SPLITTER = 2.0**27 + 1
_LARGE, _SMALL = 2.0**400, 2.0**-400  # between them no step of a product in two parts overflows or underflows


def two_sum(a: Doubles, b: Doubles) -> tuple[Doubles, Doubles]:
    """Return the rounded sum and its exact error (D. E. Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def two_product(a: Doubles, b: Doubles) -> tuple[Doubles, Doubles]:
    """Return the rounded product and its exact error (T. J. Dekker); for numbers of moderate size."""
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    product = a * b
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _halves(values: Doubles) -> tuple[Doubles, Doubles]:
    scaled = values * _SPLITTER
    high = scaled - (scaled - values)
    return high, values - high


def odd_sum(a: Doubles, b: Doubles) -> Doubles:
    """Return the sum rounded to odd."""
    total, error = two_sum(a, b)
    inexact = np.isfinite(total) & (error != 0)
    if not inexact.any():
        return total
    even = (total.view(np.int64) & 1) == 0
    towards = np.where(error > 0, np.inf, -np.inf)
    return np.where(inexact & even, np.nextafter(total, towards), total)


def stepped(near: Values, error: Values, mode: str) -> Values:
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
        return _to_bfloat(exact, mode)
    near = exact.astype(kind.dtype)
    return near if mode == "rn" else stepped(near, exact - near.astype(np.float64), mode)


def _to_bfloat(exact: Doubles, mode: str) -> Values:
    """Round by whole numbers: in the bits of an fp32, the next bf16 is 2**16 further."""
    single = exact.astype(np.float32)
    single = stepped(single, exact - single, "rz")
    sticky = (single.astype(np.float64) != exact) & np.isfinite(exact)
    bits = single.view(np.uint32) | sticky.astype(np.uint32)
    kept, rest = bits >> np.uint32(16), bits & np.uint32(0xFFFF)
    negative = (bits >> np.uint32(31)) == 1
    up = {
        "rn": (rest > 0x8000) | ((rest == 0x8000) & (kept & 1 == 1)),
        "rz": np.zeros(bits.shape, np.bool_),
        "rm": negative & (rest != 0),
        "rp": ~negative & (rest != 0),
    }[mode]
    rounded = kept + up.astype(np.uint32)
    return np.where(np.isnan(exact), 0x7FFF, np.where(np.isinf(exact), kept, rounded)).astype(np.uint16)


def double_add(a: Doubles, b: Doubles, mode: str) -> Doubles:
    """Return a + b in float64, rounded in `mode`."""
    total, error = two_sum(a, b)
    return stepped(total, np.where(np.isfinite(a) & np.isfinite(b), error, 0.0), mode)


def double_multiply(a: Doubles, b: Doubles, mode: str) -> Doubles:
    """Return a × b in float64, rounded in `mode`."""
    return a * b if mode == "rn" else double_fma(a, b, np.where(a * b == 0, a * b, 0.0), mode)


def double_fma(a: Doubles, b: Doubles, c: Doubles, mode: str = "rn") -> Doubles:
    """Return a × b + c in float64, rounded once in `mode`."""
    plain = a * b + c
    exact = (a == 0) | (b == 0) | ~np.isfinite(a) | ~np.isfinite(b) | ~np.isfinite(c)
    far = ~exact & (_far(a) | _far(b) | ((c != 0) & _far(c)))
    high, low = two_product(a, b)
    middle, rest = two_sum(c, low)
    top, below = two_sum(high, middle)
    tail = odd_sum(rest, below)
    total, error = two_sum(top, tail)
    found = np.where(exact, plain, stepped(total, error, mode))
    for lane in np.flatnonzero(far):
        found[lane] = _fraction_fma(float(a[lane]), float(b[lane]), float(c[lane]), mode)
    return found


def _far(values: Doubles) -> npt.NDArray[np.bool_]:
    size = np.abs(values)
    return (size > _LARGE) | (size < _SMALL)


def _fraction_fma(a: float, b: float, c: float, mode: str) -> float:
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        near = float(exact)
    except OverflowError:
        near = np.inf if exact > 0 else -np.inf
        return float(stepped(np.array(near), np.array(-near), mode))
    error = exact - Fraction(near) if np.isfinite(near) else Fraction(0)
    return float(stepped(np.array(near), np.array((error > 0) - (error < 0)), mode))


_LOW_BITS, _TIE = np.int64(0x1FFFFFFF), np.int64(0x10000000)  # of a float64, that do not fit a float32
_EXPONENT, _TINY = np.int64(0x7FF << 52), np.int64((1023 - 125) << 52)  # below: subnormal as float32


def single_fma(a: Values, b: Values, c: Values) -> Values:
    """Return a × b + c in float32, rounded once to nearest.

    The product is exact in float64; only a rounded sum that then lies halfway between two float32 can be wrong.
    """
    product, addend = a.astype(np.float64) * b, c.astype(np.float64)
    total = product + addend
    bits = total.view(np.int64)
    if ((bits & _LOW_BITS) == _TIE).any() or ((bits & _EXPONENT) < _TINY).any():
        total = odd_sum(product, addend)
    return total.astype(np.float32)
