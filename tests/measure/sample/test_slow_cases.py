"""Slow cases by earlier call times: in proportion to sizes, from calls longer than their fixed cost."""

from dataclasses import replace

import pytest

from gpuexplore.core.model import Case, Measurement, Result, Shape, Status
from gpuexplore.measure.sample import slow_cases


def case(size, dtype="fp16", implementation="torch"):
    return Case("matmul", Shape.of(m=size, k=size, n=size), dtype, implementation, "cpu")


def seen(size, seconds, **about):
    slow_cases.note(Result(case(size, **about), Status.OK, measurement=Measurement((seconds,), 1.0)))


@pytest.mark.parametrize(
    ("size", "seconds", "asked", "slow"),
    [
        (256, 33e-3, 1024, True),  # 64 times as many products: 2.1 s
        (256, 33e-3, 280, False),
        (256, 33e-3, 512, True),
        (1024, 2.1, 256, False),
        (1024, 2.1, 1024, True),
        (16, 5e-6, 1024, False),  # a call of microseconds tells of its fixed cost alone
        (1024, 5e-6, 1024, False),
    ],
)
def test_time_of_another_size_is_expected_in_proportion(size, seconds, asked, slow):
    seen(size, seconds)

    assert slow_cases.are_slow([case(asked)]) is slow


def test_cases_of_a_group_count_together():
    seen(256, 40e-3)
    seen(256, 40e-3, implementation="numpy")

    assert not slow_cases.are_slow([case(256)])
    assert slow_cases.are_slow([case(256), case(256, implementation="numpy")])


def test_nothing_is_known_of_another_dtype_nor_by_a_failure():
    seen(1024, 2.1)
    slow_cases.note(Result(case(1024, "bf16"), Status.ERROR, "no"))

    assert not slow_cases.are_slow([case(1024, "bf16"), case(1024, "fp32")])
    assert not slow_cases.are_slow([replace(case(1024), device="cuda:0")])


def test_kinds_are_forgotten_before_there_are_too_many(monkeypatch):
    monkeypatch.setattr(slow_cases, "MOST_KINDS", 2)
    for implementation in ("a", "b", "c"):
        seen(1024, 2.1, implementation=implementation)

    assert [slow_cases.are_slow([case(1024, implementation=name)]) for name in "abc"] == [False, False, True]


def test_estimate_of_a_skipped_case_is_kept():
    slow_cases.note_call(case(1024), 2.1)

    assert slow_cases.expected_s(case(2048)) == pytest.approx(8 * 2.1)
    assert slow_cases.are_slow([case(1024)])
