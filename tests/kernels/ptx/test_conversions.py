"""Conversions between all types, and moves that pack and unpack."""

from math import inf, nan

import numpy as np
import pytest

from gpuexplore.core.dtypes import DTYPES
from tests.kernels.ptx.snippets import WARP, computed

RANDOM = np.random.default_rng(9)


def singles():
    return (RANDOM.standard_normal(WARP) * 2.0 ** RANDOM.integers(-20, 15, WARP)).astype(np.float32)


def test_narrower_whole_numbers_are_cut_and_wider_ones_extended():
    a = RANDOM.integers(-(2**31), 2**31, WARP).astype(np.int32)

    assert (computed("cvt.s64.s32 {out}, {0};", a, kind=np.int64) == a).all()
    assert (computed("cvt.u64.u32 {out}, {0};", a.view(np.uint32), kind=np.uint64) == a.view(np.uint32)).all()
    assert (computed("cvt.u16.u32 {out}, {0};", a.view(np.uint32), kind=np.uint16) == a.astype(np.uint16)).all()
    assert (computed("cvt.s32.s8 {out}, {0};", a, kind=np.int32) == a.astype(np.int8)).all()
    assert (computed("cvt.u32.u64 {out}, {0};", a.astype(np.int64), kind=np.uint32) == a.view(np.uint32)).all()
    assert (computed("cvt.sat.s16.s32 {out}, {0};", a, kind=np.int16) == a.clip(-32768, 32767)).all()


@pytest.mark.parametrize(
    ("mode", "function"), [("rni", np.rint), ("rzi", np.trunc), ("rmi", np.floor), ("rpi", np.ceil)]
)
def test_floats_become_whole_numbers_by_the_mode(mode, function):
    a = (RANDOM.standard_normal(WARP) * 10).astype(np.float32)
    a[:4] = 0.5, 1.5, -0.5, -2.5

    assert (computed(f"cvt.{mode}.s32.f32 {{out}}, {{0}};", a, kind=np.int32) == function(a)).all()
    assert (computed(f"cvt.{mode}.s64.f64 {{out}}, {{0}};", a.astype(np.float64), kind=np.int64) == function(a)).all()
    assert (computed(f"cvt.{mode}.f32.f32 {{out}}, {{0}};", a, kind=np.float32) == function(a)).all()


def test_floats_out_of_range_become_the_nearest_whole_number_and_a_nan_0():
    a = np.array([3e9, -3e9, nan, inf] * 8, np.float32)

    assert computed("cvt.rzi.s32.f32 {out}, {0};", a, kind=np.int32)[:4].tolist() == [2**31 - 1, -(2**31), 0, 2**31 - 1]
    assert computed("cvt.rzi.u32.f32 {out}, {0};", a, kind=np.uint32)[:4].tolist() == [3_000_000_000, 0, 0, 2**32 - 1]


def test_whole_numbers_become_floats_rounded_once():
    a = RANDOM.integers(-(2**63), 2**63, WARP)
    a[0] = 2**53 + 2**29 + 1  # rounded twice, it would be a tie

    assert (computed("cvt.rn.f32.s64 {out}, {0};", a, kind=np.float32) == a.astype(np.float32)).all()
    assert (computed("cvt.rn.f64.s64 {out}, {0};", a, kind=np.float64) == a.astype(np.float64)).all()
    below = computed("cvt.rm.f32.s32 {out}, {0};", np.full(WARP, 2**24 + 1, np.int32), kind=np.float32)
    above = computed("cvt.rp.f32.s32 {out}, {0};", np.full(WARP, 2**24 + 1, np.int32), kind=np.float32)
    assert (below[0], above[0]) == (2**24, 2**24 + 2)


def test_floats_are_narrowed_to_nearest_even_and_widened_exactly():
    a = singles()
    half = a.astype(np.float16)

    assert (computed("cvt.rn.f16.f32 {out}, {0};", a, kind=np.float16) == half).all()
    assert (computed("cvt.f32.f16 {out}, {0};", half, kind=np.float32) == half).all()
    assert (computed("cvt.f64.f32 {out}, {0};", a, kind=np.float64) == a).all()
    assert (
        computed("cvt.rn.f32.f64 {out}, {0};", a / np.float64(3), kind=np.float32)
        == (a / np.float64(3)).astype(np.float32)
    ).all()


def test_bf16_is_rounded_as_the_project_rounds_it():
    a, bf16 = singles(), DTYPES["bf16"]
    a[:2] = 1 + 2.0**-8, 1 + 3 * 2.0**-8  # ties

    found = computed("cvt.rn.bf16.f32 {out}, {0};", a, kind=np.uint16)

    assert (found == bf16.round(a)).all()
    assert (computed("cvt.f32.bf16 {out}, {0};", found, kind=np.float32) == bf16.widen(found)).all()
    cut = computed("cvt.rz.bf16.f32 {out}, {0};", a, kind=np.uint16)
    assert (cut == a.view(np.uint32) >> 16).all()


def test_two_floats_are_packed_with_the_first_in_the_upper_half():
    a, b = singles(), singles()

    found = computed("cvt.rn.f16x2.f32 {out}, {0}, {1};", a, b, kind=np.uint32)

    assert (found.view(np.float16).reshape(WARP, 2) == np.stack([b, a], 1).astype(np.float16)).all()


def test_tf32_is_rounded_as_the_project_rounds_it():
    a = singles()

    assert (computed("cvt.rna.tf32.f32 {out}, {0};", a, kind=np.uint32) & 0x1FFF == 0).all()
    assert (computed("cvt.rn.tf32.f32 {out}, {0};", a, kind=np.float32) == DTYPES["tf32"].round(a)).all()


def test_moves_pack_and_unpack_registers():
    a, b = singles().view(np.uint32), singles().view(np.uint32)

    packed = computed("mov.b64 {out}, {{{0}, {1}}};", a, b, kind=np.uint64)

    assert (packed == a.astype(np.uint64) | b.astype(np.uint64) << np.uint64(32)).all()
    upper = computed("mov.b64 {{_, {out}}}, {0};", packed, kind=np.uint32)
    assert (upper == b).all()


@pytest.mark.parametrize(("text", "value"), [("0f3FC00000", 1.5), ("0fFF800000", -inf)])
def test_floating_point_constants_are_read_by_their_bits(text, value):
    assert computed(f"mov.f32 {{out}}, {text};", np.zeros(WARP, np.float32), kind=np.float32)[0] == value


def test_values_that_must_saturate_do():
    a = np.array([-1, 0.5, 7, nan] * 8, np.float32)

    assert computed("cvt.sat.f32.f32 {out}, {0};", a, kind=np.float32)[:4].tolist() == [0, 0.5, 1, 0]


def test_whole_numbers_are_saturated_as_fractions():
    a = np.array([-3, 0, 1, 7] * 8, np.int32)

    assert computed("cvt.rn.sat.f32.s32 {out}, {0};", a, kind=np.float32)[:4].tolist() == [0, 0, 1, 1]
