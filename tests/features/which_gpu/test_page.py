"""The page Which GPU: its sentence, its chart and its table for a call, and what its links mean."""

from urllib.parse import urlsplit

import pytest

from gpuexplore.charts.quick_altair import quick_altair
from gpuexplore.features.atlas.analysis import points, usual_calls
from gpuexplore.features.atlas.analysis.which_gpu import ORDERS, ranked, usual_devices
from gpuexplore.features.atlas.ui.picked import usual_dtype, usual_shape
from gpuexplore.features.which_gpu import ui as which
from gpuexplore.features.which_gpu.ui import ranking
from gpuexplore.operations import OPERATIONS
from tests.pages.conftest import compiler, home, page, spec, texts

CALL = {"op": "matmul", "dtype": "bf16", "shape": "8192"}
COLUMNS = {"time": "Time", "energy": "Energy", "memory": "Memory", "price": which.COST}


def drawn(app):
    """Return the GPUs of the chart, from the top."""
    return spec(app)["layer"][0]["encoding"]["y"]["sort"]


def chosen(app):
    return {one.label: one.value for one in (*app.selectbox, *app.multiselect, *app.text_input, *app.button_group)}


def answer(app):
    """Return the sentence above the choices."""
    (said,) = [one for one in texts(app.markdown).splitlines() if one.startswith("#### ")]
    return said


@pytest.mark.parametrize("query", [{}, {"op": "vector_add"}, {"op": "attention"}])
def test_the_first_look_at_an_operation_tells_the_best_draws_the_first_and_lists_all(page, query):
    app = page("which-gpu", **query)
    table = app.dataframe[0].value

    assert not app.exception
    assert not app.error
    assert "#### Fastest: " in answer(app)
    assert drawn(app) == list(table["GPU"])[:15]
    assert len(table) == len(usual_devices())


def test_a_link_restores_every_choice(page):
    query = {"op": "softmax", "dtype": "fp32", "shape": "m=1024,n=1024", "calls": "queued", "by": "price"}
    app = page("which-gpu", **query, price="t4:0.35")

    assert not app.error
    assert not app.warning
    assert chosen(app) == {
        "Operation": "softmax",
        "Dtype": "fp32",
        "Shape": "m=1024,n=1024",
        "Predicted calls": "queued",
        "Best first by": "price",
        "Your prices per hour": "t4:0.35",
    }


def test_which_gpu_tells_the_best_and_lists_all_that_were_measured_or_are_rented_out(page):
    app = page("which-gpu", **CALL)
    table = app.dataframe[0].value

    assert f"Fastest: **{table['GPU'][0]}**" in answer(app)
    assert "Least energy: no significant difference between **" in answer(app)
    assert "Cheapest: **" in answer(app)
    assert len(table) == len(usual_devices())
    assert list(table["Time"].dropna()) == sorted(table["Time"].dropna())
    assert set(table["Price list"].dropna().map(lambda url: urlsplit(url).scheme)) == {"https"}
    assert table["Price source"].dropna().str.contains(r", \d{4}-\d\d-\d\d$").all()


@pytest.mark.parametrize("by", ORDERS)
def test_table_and_chart_are_in_the_order_that_is_asked_for_and_the_sentence_stays(page, by):
    app = page("which-gpu", **CALL, by=by)
    table = app.dataframe[0].value
    values = table[COLUMNS[by]].dropna()

    assert list(values) == sorted(values, reverse=by == "memory")
    assert drawn(app) == list(table["GPU"][values.index])[:15]
    assert answer(app) == answer(page("which-gpu", **CALL))


def test_an_entered_price_counts_in_the_order_and_a_wrong_one_is_named(page):
    app = page("which-gpu", price="t4:0.001,abacus:1,l4:free", by="price")
    table = app.dataframe[0].value.set_index("GPU")
    costs = list(table[which.COST].dropna())

    assert costs == sorted(costs)
    assert drawn(app)[0] == "Tesla T4"
    assert "Cheapest: **Tesla T4**" in answer(app)
    assert table.loc["Tesla T4", "US$ per hour"] == 0.001
    assert table.loc["Tesla T4", "Price source"] == "entered"
    assert "'abacus:1'" in texts(app.error)
    assert "'l4:free'" in texts(app.error)


def test_a_published_time_of_the_shape_counts_and_its_source_opens(page):
    point = next(point for point in points("matmul", ["v100-sxm2-16gb"], ["fp16"]) if point.time_s > 1e-3)
    app = page("which-gpu", op="matmul", dtype="fp16", shape=str(point.shape))
    table = app.dataframe[0].value.set_index("GPU")

    assert table.loc[point.device.name, "From"] == "published by DeepBench"
    assert table.loc[point.device.name, "Source"].startswith("https://github.com/baidu-research/DeepBench/")


def test_a_call_that_no_gpu_has_units_for_has_a_sentence_and_a_table_without_a_chart(page, monkeypatch):
    t4 = next(device for device in usual_devices() if device.id == "t4")
    monkeypatch.setattr(which, "usual_devices", lambda: (t4,))
    app = page("which-gpu", op="matmul", dtype="tf32", shape="8192")

    assert not app.exception
    assert answer(app) == "#### No time of this call is known on any GPU."
    assert not app.get("vega_lite_chart")
    assert list(app.dataframe[0].value["GPU"]) == ["Tesla T4"]


def test_bad_values_of_the_url_are_named_with_the_accepted_ones(page):
    app = page("which-gpu", op="divide", dtype="fp9", calls="twice", by="taste", shape="12 apples")
    told = texts(app.error)

    assert not app.exception
    assert "op 'divide': expected linear, matmul" in told
    assert "dtype 'fp9': expected" in told
    assert "calls 'twice': expected graph, queued, single" in told
    assert "by 'taste': expected time, energy, memory, price" in told
    assert "shape of linear '12 apples'" in told


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_operation_has_its_gpus_and_their_charts(operation):
    dtype = usual_dtype(operation)
    found = points(operation, dtypes=[dtype])
    call = (operation, dtype, usual_shape(operation, found), usual_calls(found))
    choices = which._gpus_for(call, {}, ())

    assert len(choices) == len(usual_devices())
    for by in ORDERS:
        with quick_altair():
            assert len(ranking(ranked(choices, by), by).to_dict()["layer"]) == 4
