"""Logic, shifts, fields, comparisons and choices against plain Python."""

from math import nan

import numpy as np
import pytest

from tests.kernels.ptx.snippets import WARP, computed

RANDOM = np.random.default_rng(8)
MASK = 2**32 - 1


def words(kind=np.uint32):
    return RANDOM.integers(0, np.iinfo(kind).max, WARP, kind, endpoint=True)


@pytest.mark.parametrize(
    ("instruction", "function"),
    [
        ("and.b32 {out}, {0}, {1};", lambda a, b: a & b),
        ("or.b32 {out}, {0}, {1};", lambda a, b: a | b),
        ("xor.b32 {out}, {0}, {1};", lambda a, b: a ^ b),
        ("not.b32 {out}, {0};", lambda a, b: a ^ MASK),
        ("cnot.b32 {out}, {0};", lambda a, b: int(a == 0)),
        ("popc.b32 {out}, {0};", lambda a, b: a.bit_count()),
        ("clz.b32 {out}, {0};", lambda a, b: 32 - a.bit_length()),
        ("brev.b32 {out}, {0};", lambda a, b: int(f"{a:032b}"[::-1], 2)),
        ("lop3.b32 {out}, {0}, {1}, {0}, 0xC0;", lambda a, b: a & b),
        ("lop3.b32 {out}, {0}, {1}, 255, 0x96;", lambda a, b: a ^ b ^ 255),
        ("prmt.b32 {out}, {0}, {1}, 0x5410;", lambda a, b: a & 0xFFFF | (b & 0xFFFF) << 16),
        ("prmt.b32 {out}, {0}, {1}, 0xBBBB;", lambda a, b: MASK if a >> 31 else 0),
        ("shf.l.wrap.b32 {out}, {0}, {1}, 8;", lambda a, b: (b << 8 | a >> 24) & MASK),
        ("shf.r.clamp.b32 {out}, {0}, {1}, 40;", lambda a, b: b),
        ("bfe.u32 {out}, {0}, 4, 12;", lambda a, b: a >> 4 & 0xFFF),
        ("bfi.b32 {out}, {0}, {1}, 4, 12;", lambda a, b: b & ~0xFFF0 | (a & 0xFFF) << 4),
        ("shl.b32 {out}, {0}, 5;", lambda a, b: a << 5 & MASK),
        ("shl.b32 {out}, {0}, 32;", lambda a, b: 0),
        ("shr.u32 {out}, {0}, 40;", lambda a, b: 0),
    ],
    ids=lambda value: value.split()[0] + value.split()[-1] if isinstance(value, str) else "",
)
def test_bits_are_moved_as_in_plain_python(instruction, function):
    a, b = words(), words()
    a[0] = 0

    found = computed(instruction, a, b, kind=np.uint32)

    assert found.tolist() == [function(int(x), int(y)) for x, y in zip(a, b, strict=True)]


def test_signed_shifts_and_fields_keep_the_sign():
    a = words().view(np.int32)

    assert (computed("shr.s32 {out}, {0}, 7;", a, kind=np.int32) == a >> 7).all()
    assert (computed("shr.s32 {out}, {0}, 99;", a, kind=np.int32) == a >> 31).all()
    assert (computed("bfe.s32 {out}, {0}, 8, 8;", a, kind=np.int32) == (a >> 8).astype(np.int8)).all()
    assert (computed("shr.s64 {out}, {0}, 63;", a.astype(np.int64), kind=np.int64) == a.astype(np.int64) >> 63).all()


COMPARED = {
    "lt.s32": (np.int32, np.less),
    "le.s32": (np.int32, np.less_equal),
    "gt.u32": (np.uint32, np.greater),
    "hi.u32": (np.uint32, np.greater),
    "ls.u32": (np.uint32, np.less_equal),
    "eq.b32": (np.uint32, np.equal),
    "ne.s32": (np.int32, np.not_equal),
    "lt.f32": (np.float32, np.less),
    "ge.f32": (np.float32, np.greater_equal),
}


@pytest.mark.parametrize("name", COMPARED)
def test_comparison_sets_a_predicate_that_selects(name):
    kind, function = COMPARED[name]
    a = RANDOM.integers(-3, 3, WARP).astype(np.int32).astype(kind)
    b = RANDOM.integers(-3, 3, WARP).astype(np.int32).astype(kind)

    found = computed(f"setp.{name} %p1, {{0}}, {{1}}; selp.u32 {{out}}, 1, 0, %p1;", a, b, kind=np.uint32)

    assert found.tolist() == function(a, b).astype(int).tolist()


@pytest.mark.parametrize(
    ("name", "holds"), [("ne", 0), ("neu", 1), ("lt", 0), ("geu", 1), ("nan", 1), ("num", 0), ("eq", 0), ("equ", 1)]
)
def test_comparison_with_a_nan_holds_only_where_its_name_says_unordered(name, holds):
    a, b = np.full(WARP, nan, np.float32), np.ones(WARP, np.float32)

    found = computed(f"setp.{name}.f32 %p1, {{0}}, {{1}}; selp.u32 {{out}}, 1, 0, %p1;", a, b, kind=np.uint32)

    assert set(found.tolist()) == {holds}


def test_comparison_is_combined_with_a_predicate_and_gives_its_complement():
    a = np.arange(WARP, dtype=np.uint32)
    code = "setp.lt.u32 %p1, {0}, 8; setp.gt.and.u32 %p2|%p3, {0}, 3, %p1; selp.u32 {out}, 1, 0, %p2;"
    other = code.replace("0, %p2", "0, %p3")

    assert np.flatnonzero(computed(code, a, kind=np.uint32)).tolist() == [4, 5, 6, 7]
    assert np.flatnonzero(computed(other, a, kind=np.uint32)).tolist() == [0, 1, 2, 3]


def test_logic_of_predicates_and_negated_guards():
    a = np.arange(WARP, dtype=np.uint32)
    code = (
        "setp.lt.u32 %p1, {0}, 8; setp.gt.u32 %p2, {0}, 3; and.pred %p3, %p1, %p2; not.pred %p4, %p3;"
        "xor.pred %p5, %p4, %p1; mov.u32 {out}, 0; @%p3 mov.u32 {out}, 1; @!%p5 add.u32 {out}, {out}, 2;"
    )

    found = computed(code, a, kind=np.uint32)

    both = (a < 8) & (a > 3)
    assert found.tolist() == (both * 1 + ~(~both ^ (a < 8)) * 2).tolist()


def test_selection_by_sign_and_comparison_as_a_mask():
    a = np.arange(-16, 16, dtype=np.int32)

    assert (computed("slct.s32.s32 {out}, 5, 6, {0};", a, kind=np.int32) == np.where(a >= 0, 5, 6)).all()
    assert (computed("set.lt.s32.s32 {out}, {0}, 0;", a, kind=np.int32) == np.where(a < 0, -1, 0)).all()
