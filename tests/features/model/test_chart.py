import altair as alt
import pyarrow as pa
import pytest

from gpuexplore.features.model.analysis import Serving, Training
from gpuexplore.features.model.analysis.models import model_named
from gpuexplore.features.model.analysis.plan import ModelPlan
from gpuexplore.features.model.analysis.prediction import by_batch
from gpuexplore.features.model.analysis.rows import PublishedPoint
from gpuexplore.features.model.analysis.training import serving_memory, training_memory
from gpuexplore.features.model.chart import MOST_MOMENTS, _condensed, memory_timeline
from gpuexplore.features.model.speed_chart import _log, memory_bars, step_shares, throughput
from gpuexplore.hardware import target_named
from gpuexplore.ui.shared.charts import spec_of
from tests.charts.conftest import _checked_once


def rows(chart):
    alt.LayerChart.from_dict(chart).to_dict()  # valid
    return chart["data"]["values"]


def texts(chart):
    """Return the rows of everything that is no bar."""
    return [row for layer in chart["layer"] if "data" in layer for row in layer["data"]["values"]]


def test_bars_stand_on_each_other_up_to_the_total_of_their_moment():
    memory = training_memory("vgg-16", 128, Training(optimizer="adamw"))
    drawn = rows(memory_timeline(memory, {}))

    assert max(row["y2"] for row in drawn) == memory.total_bytes
    assert {row["kind"] for row in drawn} == {
        "parameters",
        "optimizer state",
        "gradients",
        "batch",
        "activations",
        "temporary",
    }
    assert all(row["y"] < row["y2"] and row["x"] < row["x2"] for row in drawn)


def test_the_peak_is_marked_and_named():
    memory = training_memory("vgg-16", 128)

    (peak,) = {value["label"]: value for value in texts(memory_timeline(memory, {})) if "y" in value}.values()
    assert (peak["y"], peak["label"]) == (memory.total_bytes, "10.5 GB: backward, relu (layer 23)")


@pytest.mark.parametrize(("capacity", "is_drawn"), [(12 * 2**30, True), (80 * 2**30, False), (2**30, False)])
def test_the_memory_of_a_gpu_is_a_line_where_it_is_near_the_peak(capacity, is_drawn):
    chart = memory_timeline(training_memory("vgg-16", 128), {"a card": capacity})

    assert any(value.get("label") == "a card" for value in texts(chart)) is is_drawn
    assert "a card" in chart["description"]


def test_a_long_model_is_drawn_with_few_moments_and_its_peak():
    memory = training_memory("llama-3-70b", 1, Training(mixed="bf16"))
    points = _condensed(memory.timeline)

    assert len(memory.timeline) > MOST_MOMENTS >= 0.9 * len(points)
    assert max(point.total_bytes for point in points) == memory.total_bytes


def test_serving_is_drawn_by_tokens():
    chart = memory_timeline(serving_memory("llama-3-8b", 8, Serving()), {})

    assert "KV cache" in str(chart)
    assert chart["layer"][0]["encoding"]["x"]["title"] == "Tokens of each sequence"
    assert "peak 24.7 GB in decoding, token 8,192" in chart["description"]


@pytest.mark.parametrize(("share", "dy"), [(0.98, -28), (1.6, -12)])
def test_label_of_the_peak_stands_above_that_of_a_memory_at_the_same_height(share, dy):
    memory = training_memory("vgg-16", 128)
    layers = memory_timeline(memory, {"a card": int(share * memory.total_bytes)})["layer"]

    assert {layer["mark"]["dy"] for layer in layers if layer["mark"].get("fontWeight") == 600} == {dy}


@pytest.mark.parametrize("task", ["serve", "train"])
def test_charts_of_speed_are_vega_lite_whose_rows_are_sent_as_arrow(task):
    lines = {
        key: by_batch(model_named("gpt2-124m"), ModelPlan(task), target_named(key, ()), batches=(1, 4))
        for key in ("l4", "a100-sxm4-80gb")
    }
    chosen = {name: curve[1] for name, curve in lines.items()}
    point = PublishedPoint("L4, batch 4", 0.1, 40.0, "https://example.org")
    charts = [throughput(lines, 4, [point]), step_shares(chosen), memory_bars(chosen)]
    for chart in charts:
        alt.LayerChart.from_dict(chart).to_dict()

    drawn = charts[0]["data"]["values"]
    assert [(row["line"], row["batch"], row["chosen"]) for row in drawn][:2] == [("l4", 1, False), ("l4", 4, True)]
    assert [row["y"] for row in drawn] == [each.per_second.value for curve in lines.values() for each in curve]
    assert charts[0]["layer"][0]["mark"]["strokeDash"]  # the roof
    assert charts[0]["layer"][-1]["data"]["values"][0]["name"] == "published"

    spec = spec_of(lambda: charts[0])
    rows = pa.ipc.open_stream(spec["datasets"][spec["data"]["name"]]).read_all().to_pylist()
    assert rows == drawn
    assert all("values" not in layer.get("data", {}) for layer in spec["layer"])


def test_an_axis_too_narrow_for_three_round_ticks_leaves_them_to_the_browser():
    narrow, wide = (_log("y", "Images a second", rates, "")["axis"] for rates in ([1.7, 1.9], [1.0, 40.0]))

    assert ("values" in narrow, narrow["tickCount"]) == (False, 5)
    assert wide["values"] == [1.0, 2.0, 5.0, 10.0, 20.0]
