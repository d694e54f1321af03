"""The bars of a trace: their order, what they add up to, and their alternative text."""

import pytest

from gpuexplore.features.trace.ui import MOST_BARS, _bars_of, _time_by_operation
from tests.charts.conftest import _checked_once
from tests.features.trace.analysis.made import DATA, as_bytes, event, gpu_trace, table_from


def test_bars_are_of_operations_whatever_their_shapes_the_longest_first():
    bars = _bars_of(table_from(gpu_trace()))

    assert list(zip(bars["operation"], bars["kind"], strict=True)) == [
        ("aten::addmm", "matrix products"),
        ("aten::add", "element-wise operations"),
        ("aten::copy_", "copies"),
    ]
    assert list(bars["share"]) == pytest.approx([0.5, 0.375, 0.125])


def test_many_operations_end_in_one_bar_and_shares_add_up():
    bars = _bars_of(table_from(DATA.read_bytes()))

    assert len(bars) == MOST_BARS + 1
    assert list(bars["operation"])[-1] == "all others"
    assert bars["share"].sum() == pytest.approx(1)


def test_the_alternative_text_has_every_bar_and_what_took_no_time_has_none():
    chart = _time_by_operation(table_from(gpu_trace())).to_dict()

    assert chart["description"] == (
        "Share of the kernel time by operation, of 400 µs: aten::addmm 50.0 %, aten::add 37.5 %, aten::copy_ 12.5 %."
    )
    assert len(chart["layer"]) == 2

    chart = _time_by_operation(table_from({"traceEvents": [event("cpu_op", "aten::mm", 0.0, 0.0)]}))

    assert "nothing took any" in chart.to_dict()["description"]
