import altair as alt
import pytest

from gpuexplore.features.transfer.analysis.comparison import break_even_size, stack
from gpuexplore.features.transfer.chart import cpu_against_gpu, first_use, transfer_rates
from tests.charts.conftest import _checked_once
from tests.features.transfer.analysis.made import moves, point, span

POINTS = [point(size, cpu=size, move=12.0, kernel=4.0) for size in (4, 64)]


def all_rows(chart):
    alt.LayerChart.from_dict(chart).to_dict()  # valid
    tables = [part["data"]["values"] for part in (chart, *chart["layer"]) if "data" in part]
    return [row for at, table in enumerate(tables) if table not in tables[:at] for row in table]


def rows(chart):
    """Return the rows of what is drawn, which have words for a tooltip."""
    return [row for row in all_rows(chart) if "shown" in row]


def inline(chart):
    """Return the rows of lines and marks."""
    return [row for row in all_rows(chart) if "label" in row]


def test_rates_are_drawn_below_the_peak():
    chart = transfer_rates(moves(), {"a peak": 2e9}, "Transfer rate")

    assert [row["value"] for row in rows(chart)] == [pytest.approx(1e9)] * 2
    assert {"value": 2e9, "label": "a peak"} in inline(chart)
    assert chart["description"] == ("Transfer rate against size; at 64.0 MiB: torch memory copy 1.00 GB/s; a peak.")


def test_a_first_use_is_stacked_and_what_is_unknown_is_only_told():
    chart = first_use(stack(POINTS[0], cpu_first=span(1.0, 1.0, "measured"), gpu_first=None))

    assert [(row["where"], row["part"]) for row in rows(chart)] == [
        ("CPU", "first call"),
        ("CPU", "kernel"),
        ("GPU", "host to device"),
        ("GPU", "kernel"),
        ("GPU", "device to host"),
    ]
    assert [row["label"] for row in inline(chart)] == ["GPU: first call unknown, not drawn"]
    assert legend_of(chart) == ["first call", "host to device", "kernel", "device to host"]
    assert "GPU first call unknown" in chart["description"]


def test_the_legend_names_only_the_parts_that_are_drawn():
    assert "first call" not in legend_of(first_use(stack(POINTS[0], cpu_first=None, gpu_first=None)))


def legend_of(chart):
    return chart["layer"][0]["encoding"]["color"]["legend"]["values"]


def test_the_break_even_is_marked():
    found = break_even_size(POINTS)
    chart = cpu_against_gpu(POINTS, found, "n")

    assert {"size": 16, "label": "break-even 16"} in inline(chart)
    assert "the GPU wins from size 16 (16 to 16)" in chart["description"]
    assert {row["series"] for row in rows(chart)} == {"CPU", "GPU with transfers", "GPU, data there"}


def test_a_gpu_that_never_wins_has_no_mark():
    points = [point(size, cpu=1.0, move=12.0, kernel=4.0) for size in (4, 64)]
    chart = cpu_against_gpu(points, break_even_size(points), "n")

    assert inline(chart) == []
    assert chart["description"].endswith("the GPU wins at no size compared.")
    assert chart["layer"][0]["encoding"]["x"]["scale"]["domain"] == [4, 64]  # nothing is measured
