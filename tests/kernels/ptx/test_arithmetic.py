"""Each arithmetic instruction against NumPy, and its rounding against exact fractions."""

from fractions import Fraction
from math import inf, nan

import numpy as np
import pytest

from gpuexplore.core.dtypes import DTYPES
from tests.kernels.ptx.snippets import WARP, computed

RANDOM = np.random.default_rng(7)
MODES = ("rn", "rz", "rm", "rp")
TINY = np.finfo(np.float32).smallest_normal / 4


def floats(kind, *, spread=8):
    """Return numbers of many sizes, of both signs."""
    return (RANDOM.standard_normal(WARP) * 2.0 ** RANDOM.integers(-spread, spread, WARP)).astype(kind)


def whole(kind):
    """Return numbers of the whole range, its ends among them."""
    limits = np.iinfo(kind)
    found = RANDOM.integers(limits.min, limits.max, WARP, kind, endpoint=True)
    found[:3] = limits.min, limits.max, 0
    return found


def nearest_allowed(exact, kind, mode):
    """Return a fraction rounded to a NumPy type by comparing neighbours."""
    near = kind(float(exact)) if kind is np.float64 else kind(np.float64(float(exact)))
    around = [np.nextafter(near, kind(-inf)), near, np.nextafter(near, kind(inf))]
    if mode == "rn":
        return min(
            around, key=lambda value: (abs(Fraction(float(value)) - exact), int(value.view(f"u{kind().nbytes}")) & 1)
        )
    below = [value for value in around if Fraction(float(value)) <= exact]
    above = [value for value in around if Fraction(float(value)) >= exact]
    down = mode == "rm" or (mode == "rz" and exact > 0)
    return max(below) if down else min(above)


def exactly(function, *sources):
    return [function(*(Fraction(float(value)) for value in row)) for row in zip(*sources, strict=True)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", [np.float32, np.float64], ids=["f32", "f64"])
@pytest.mark.parametrize(
    ("name", "function"),
    [("add", lambda a, b: a + b), ("sub", lambda a, b: a - b), ("mul", lambda a, b: a * b)],
    ids=["add", "sub", "mul"],
)
def test_sum_difference_and_product_are_rounded_as_the_mode_says(name, function, kind, mode):
    a, b = floats(kind), floats(kind)
    bits = kind().nbytes * 8

    found = computed(f"{name}.{mode}.f{bits} {{out}}, {{0}}, {{1}};", a, b, kind=kind)

    assert found.tolist() == [nearest_allowed(exact, kind, mode) for exact in exactly(function, a, b)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64], ids=["f16", "f32", "f64"])
def test_multiply_add_is_rounded_once(kind, mode):
    a, b = floats(kind, spread=3), floats(kind, spread=3)
    c = (-a.astype(np.float64) * b * (1 + RANDOM.integers(-2, 3, WARP) * 2.0**-9)).astype(kind)  # cancels

    found = computed(f"fma.{mode}.f{kind().nbytes * 8} {{out}}, {{0}}, {{1}}, {{2}};", a, b, c, kind=kind)

    exact = exactly(lambda x, y, z: x * y + z, a, b, c)
    assert found.tolist() == [nearest_allowed(value, kind, mode) for value in exact]


def test_multiply_add_of_a_tie_in_double_precision_is_right():
    a = np.full(WARP, 1 + 2.0**-12, np.float32)
    b = np.full(WARP, 1 + 2.0**-12, np.float32)  # product: 1 + 2**-11 + 2**-24, halfway between two float32
    c = np.full(WARP, 2.0**-80, np.float32)  # lost in float64, but above halfway
    c[1] = -c[1]

    found = computed("fma.rn.f32 {out}, {0}, {1}, {2};", a, b, c, kind=np.float32)

    assert found[0] == np.float32(1 + 2.0**-11 + 2.0**-23)
    assert found[1] == np.float32(1 + 2.0**-11)


def test_multiply_add_in_double_precision_holds_at_the_ends_of_the_range():
    a = np.array([2.0**1000, 2.0**-600, inf, nan, 0.0, 2.0**1023, *[1.0] * 26])
    b = np.array([2.0**-900, 2.0**-460, 1.0, 1.0, -5.0, 4.0, *[3.0] * 26])
    c = np.array([1.0, 2.0**-1074, -1.0, 1.0, 7.0, 0.0, *[0.0] * 26])

    found = computed("fma.rn.f64 {out}, {0}, {1}, {2};", a, b, c, kind=np.float64)

    assert found[:3].tolist() == [2.0**100 + 1, 2.0**-1060 + 2.0**-1074, inf]
    assert np.isnan(found[3])
    assert found[4:7].tolist() == [7.0, inf, 3.0]


@pytest.mark.parametrize(
    "kind", [np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64], ids=lambda kind: kind.__name__
)
def test_whole_numbers_wrap_around(kind):
    a, b = whole(kind), whole(kind)
    name = f"{np.dtype(kind).kind.replace('i', 's')}{kind().nbytes * 8}"

    with np.errstate(over="ignore"):
        expected = {"add": a + b, "sub": a - b, "mul.lo": a * b, "min": np.minimum(a, b), "max": np.maximum(a, b)}
    for instruction, values in expected.items():
        found = computed(f"{instruction}.{name} {{out}}, {{0}}, {{1}};", a, b, kind=kind)
        assert found.tolist() == values.tolist(), instruction


@pytest.mark.parametrize("kind", [np.int32, np.uint32], ids=["s32", "u32"])
def test_products_have_a_low_a_high_and_a_wide_form(kind):
    a, b, letter = whole(kind), whole(kind), "s" if kind is np.int32 else "u"
    double = np.int64 if kind is np.int32 else np.uint64
    exact = [int(x) * int(y) for x, y in zip(a, b, strict=True)]
    c = whole(double)

    wide = computed(f"mul.wide.{letter}32 {{out}}, {{0}}, {{1}};", a, b, kind=double)
    high = computed(f"mul.hi.{letter}32 {{out}}, {{0}}, {{1}};", a, b, kind=kind)
    added = computed(f"mad.wide.{letter}32 {{out}}, {{0}}, {{1}}, {{2}};", a, b, c, kind=double)
    low = computed(f"mad.lo.{letter}32 {{out}}, {{0}}, {{1}}, {{1}};", a, b, kind=kind)

    assert wide.tolist() == exact
    assert high.tolist() == [value >> 32 for value in exact]
    assert [int(value) % 2**64 for value in added] == [(x + int(y)) % 2**64 for x, y in zip(exact, c, strict=True)]
    assert [int(value) % 2**32 for value in low] == [(x + int(y)) % 2**32 for x, y in zip(exact, b, strict=True)]


@pytest.mark.parametrize(
    ("instruction", "function"),
    [
        ("div.rn.f32 {out}, {0}, {1};", np.divide),
        ("max.f32 {out}, {0}, {1};", np.fmax),
        ("min.f32 {out}, {0}, {1};", np.fmin),
        ("sqrt.rn.f32 {out}, {0};", lambda a, _: np.sqrt(a)),
        ("abs.f32 {out}, {0};", lambda a, _: np.abs(a)),
        ("neg.f32 {out}, {0};", lambda a, _: -a),
        ("rcp.rn.f32 {out}, {0};", lambda a, _: 1 / a),
    ],
    ids=lambda value: value.split()[0] if isinstance(value, str) else "",
)
def test_functions_of_floats_agree_with_numpy(instruction, function):
    a, b = np.abs(floats(np.float32)) + np.float32(0.5), floats(np.float32)
    b[0] = nan

    found = computed(instruction, a, b, kind=np.float32)

    np.testing.assert_array_equal(found, function(a, b))


@pytest.mark.parametrize(
    ("name", "function"),
    [("ex2", np.exp2), ("lg2", np.log2), ("rsqrt", lambda a: 1 / np.sqrt(a)), ("tanh", np.tanh), ("sin", np.sin)],
)
def test_approximate_functions_are_near_the_exact_ones(name, function):
    a = np.abs(floats(np.float32, spread=2)) + np.float32(0.5)

    found = computed(f"{name}.approx.f32 {{out}}, {{0}};", a, kind=np.float32)

    np.testing.assert_allclose(found, function(a.astype(np.float64)), rtol=1e-6)


@pytest.mark.parametrize(
    ("instruction", "given", "found"),
    [
        ("add.rn.f32 {out}, {0}, {0};", 3e38, inf),
        ("add.rz.f32 {out}, {0}, {0};", 3e38, np.finfo(np.float32).max),
        ("mul.rn.f32 {out}, {0}, 0f40000000;", TINY, 2 * TINY),
        ("mul.rn.ftz.f32 {out}, {0}, 0f40000000;", TINY, 0),
        ("add.sat.f32 {out}, {0}, 0f00000000;", -1, 0),
        ("add.sat.f32 {out}, {0}, 0f00000000;", 0.25, 0.25),
        ("add.sat.f32 {out}, {0}, 0f00000000;", 2, 1),
        ("add.sat.f32 {out}, {0}, 0f00000000;", nan, 0),
        ("fma.rn.sat.f32 {out}, {0}, {0}, 0f00000000;", 0.25, 0.0625),
        ("fma.rn.sat.f32 {out}, {0}, {0}, 0f00000000;", -1, 1),
        ("div.s32 {out}, {0}, 2;", np.int32(-7), -3),
        ("div.s32 {out}, {0}, -2;", np.int32(-7), 3),
        ("div.s32 {out}, {0}, -2;", np.int32(7), -3),
        ("rem.s32 {out}, {0}, -2;", np.int32(7), 1),
        ("rem.s32 {out}, {0}, 2;", np.int32(-7), -1),
    ],
)
def test_results_at_the_ends_of_a_range(instruction, given, found):
    kind = np.int32 if isinstance(given, np.int32) else np.float32

    assert set(computed(instruction, np.full(WARP, given, kind), kind=kind)) == {kind(found)}


def pairs(kind, values):
    """Return numbers two by two in words, as a format of 16 bits."""
    return np.ascontiguousarray(DTYPES[kind].round(values)).view(np.uint32)


@pytest.mark.parametrize(("kind", "dtype"), [("f16x2", "fp16"), ("bf16x2", "bf16")])
@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("add.rn", lambda a, b, c: a + b),
        ("sub.rn", lambda a, b, c: a - b),
        ("mul.rn", lambda a, b, c: a * b),
        ("fma.rn", lambda a, b, c: a * b + c),
        ("min", lambda a, b, c: np.minimum(a, b)),
        ("max", lambda a, b, c: np.maximum(a, b)),
        ("neg", lambda a, b, c: -a),
        ("abs", lambda a, b, c: np.abs(a)),
    ],
    ids=["add", "sub", "mul", "fma", "min", "max", "neg", "abs"],
)
def test_both_halves_of_a_register_are_computed_and_rounded_once(kind, dtype, name, function):
    row = DTYPES[dtype]
    exact = [row.widen(row.round(RANDOM.standard_normal(2 * WARP))).astype(np.float64) for _ in range(3)]
    count = {"fma": 3, "neg": 1, "abs": 1}.get(name[:3], 2)
    sources = ", ".join(f"{{{i}}}" for i in range(count))

    words = [pairs(dtype, values) for values in exact[:count]]
    found = computed(f"{name}.{kind} {{out}}, {sources};", *words, kind=np.uint32)

    assert found.tolist() == pairs(dtype, function(*exact)).tolist()


@pytest.mark.parametrize(("kind", "dtype"), [("f16", "fp16"), ("bf16", "bf16")])
def test_narrow_formats_are_saturated_and_ordered_as_wide_ones(kind, dtype):
    row = DTYPES[dtype]
    a = row.round(np.array([-1.0, 0.25, 2.0, nan] * 8)).view(np.uint16)
    zeros = row.round(np.zeros(WARP)).view(np.uint16)

    limited = computed(f"add.sat.{kind} {{out}}, {{0}}, {{1}};", a, zeros, kind=np.uint16)
    larger = computed(f"max.{kind} {{out}}, {{0}}, {{1}};", a, zeros, kind=np.uint16)
    larger_or_nan = computed(f"max.NaN.{kind} {{out}}, {{0}}, {{1}};", a, zeros, kind=np.uint16)

    assert row.widen(limited.view(row.storage))[:4].tolist() == [0, 0.25, 1, 0]
    assert row.widen(larger.view(row.storage))[:4].tolist() == [0, 0.25, 2, 0]
    assert np.isnan(row.widen(larger_or_nan.view(row.storage))[3])


def test_negative_zero_is_less_than_zero():
    a = np.array([0.0, -0.0, -0.0, 0.0] * 8, np.float32)
    b = np.array([-0.0, 0.0, -0.0, 0.0] * 8, np.float32)

    less = computed("min.f32 {out}, {0}, {1};", a, b, kind=np.float32)
    more = computed("max.f32 {out}, {0}, {1};", a, b, kind=np.float32)

    assert np.signbit(less[:4]).tolist() == [True, True, True, False]
    assert np.signbit(more[:4]).tolist() == [False, False, True, False]


@pytest.mark.parametrize(("kind", "dtype"), [("f16", "fp16"), ("bf16", "bf16")])
@pytest.mark.parametrize("mode", MODES)
def test_sums_of_narrow_formats_are_the_nearest_that_the_mode_allows(kind, dtype, mode):
    row = DTYPES[dtype]
    exact = [row.widen(row.round(RANDOM.standard_normal(WARP))).astype(np.float64) for _ in range(2)]
    a, b = (row.round(values).view(np.uint16) for values in exact)

    bits = computed(f"add.{mode}.{kind} {{out}}, {{0}}, {{1}};", a, b, kind=np.uint16)

    total = exact[0] + exact[1]  # exact in float64
    found, wider, narrower = (
        row.widen((bits + np.uint16(step)).view(row.storage)).astype(np.float64) for step in (0, 1, 0xFFFF)
    )
    allowed = {
        "rz": (np.abs(found) <= np.abs(total)) & (np.abs(wider) > np.abs(total)),
        "rn": found == row.widen(row.round(total)),
        "rm": (found <= total) & (np.where(found > 0, wider, narrower) > total),
        "rp": (found >= total) & (np.where(found > 0, narrower, wider) < total),
    }
    assert allowed[mode].all()
