"""The tables at the end of `make ptx` add up what the tests recorded."""

from types import SimpleNamespace

from tests.kernels.ptx.summary import HEAD, summary


def report(when="call", **properties):
    return SimpleNamespace(when=when, user_properties=list(properties.items()))


def test_launches_are_added_up_by_operation_and_mutations_by_kind():
    reports = [
        report(launch=["copy/numba-cuda/fp32", "n=1", 10, 0], cpu_s=["copy/numba-cuda/fp32", 1.5]),
        report(launch=["copy/numba-cuda/fp32", "n=257", 2000, 1]),
        report(launch=["softmax/numba-cuda/bf16", "m=1 n=1", 7, 0], cpu_s=["softmax/numba-cuda/bf16", 2.0]),
        report(mutation=["copy/numba-cuda/fp32", "no barrier", True]),
        report(mutation=["softmax/numba-cuda/bf16", "no barrier", False]),
        report(when="setup", mutation=["copy/numba-cuda/fp32", "no barrier", True]),
    ]

    lines = [line.split() for line in summary(reports)]

    assert lines == [
        HEAD.split(),
        ["copy", "1", "2", "2,010", "1", "2"],
        ["softmax", "1", "1", "7", "0", "2"],
        ["all", "2", "3", "2,017", "1", "4"],
        ["mutation", "tried", "noticed"],
        ["no", "barrier", "2", "1"],
        ["all", "2", "1"],
    ]


def test_nothing_is_printed_where_nothing_was_recorded():
    assert list(summary([report()])) == []
