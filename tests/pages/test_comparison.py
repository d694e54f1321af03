"""The choice of what results are compared with, on the page of a run."""

from dataclasses import replace

import pytest

from gpuexplore.core.model import Bandwidth, Experiment, Peak, Shape
from tests.analysis.made import ok
from tests.analysis.utilization.test_peak_choice import on_gpu
from tests.pages.conftest import OWNER, texts

LARGE = Shape.of(m=4096, k=4096, n=4096)
KEY = "benchmark.peak"


def kept(store, *results, owner="anybody"):
    """Return the id of a stored run of these results."""
    first = results[0].case
    asked = Experiment(
        first.operation,
        tuple(dict.fromkeys(result.case.shape for result in results)),
        tuple(dict.fromkeys(result.case.dtype for result in results)),
        tuple(dict.fromkeys(result.case.implementation for result in results)),
        (first.device,),
    )
    return store.record(asked, owner, results=results)


@pytest.fixture
def gpu_run(store):
    return kept(store, on_gpu(ok(1e-3, shape=LARGE, dtype="bf16"), held_hz=1.7e9))


def offered(app):
    return app.selectbox(key=KEY).options


def test_what_exists_comes_first_and_what_is_unknown_carries_a_dash(page, gpu_run):
    assert offered(page("benchmark", run=gpu_run)) == [
        "Datasheet peak (default)",
        "Datasheet peak",
        "Derived peak",
        "Peak at the measured clock",
        "Measured peak",
        "Best published result",
        "Custom peak: —",
    ]


def test_the_choice_reaches_headline_chart_table_and_url(page, gpu_run):
    app = page("benchmark", run=gpu_run, chart="share")
    before = app.dataframe[0].value["MFU"][0]
    app.selectbox(key=KEY).set_value("held_clock").run()
    assert "of the peak at the measured clock" in texts(app.markdown)
    assert app.dataframe[0].value["MFU"][0] != before
    assert "at 1.70 GHz, read at the end of sampling, instead of 1.83 GHz" in app.dataframe[0].value["Peak"][0]
    assert any("% of the peak at the measured clock" in one.proto.spec for one in app.get("vega_lite_chart"))
    assert app.query_params["peak"] in ("held_clock", ["held_clock"])


def test_a_link_carries_the_choice_and_the_default_is_not_in_it(page, gpu_run):
    app = page("benchmark", run=gpu_run, peak="measured_ceiling")
    assert "100 % of the measured peak" in texts(app.markdown)
    app.selectbox(key=KEY).set_value("").run()
    assert "peak" not in app.query_params


def test_a_link_with_an_unknown_kind_is_told_what_is_accepted(page, gpu_run):
    app = page("benchmark", run=gpu_run, peak="best")
    assert not app.exception
    assert "peak 'best': expected , " not in texts(app.error)
    assert "peak 'best': expected " in texts(app.error)
    assert "of the datasheet peak" in texts(app.markdown)


def test_an_unknown_choice_is_a_dash_with_its_reason(page, gpu_run):
    app = page("benchmark", run=gpu_run, peak="own", chart="share")
    assert "MFU" not in app.dataframe[0].value
    assert (
        "none entered for bf16 on NVIDIA H100 80GB HBM3: add one on the page Devices"
        in app.dataframe[0].value["Peak"][0]
    )
    assert "There is no MFU relative to the custom peak" in texts(app.markdown)
    assert len(app.get("vega_lite_chart")) == 0
    assert "There is no share of the limit: for every result the peak is unknown" in texts(app.caption)


def test_every_known_peak_is_listed_with_its_source_or_reason(page, gpu_run):
    compute, memory = (one.value for one in page("benchmark", run=gpu_run).table)
    assert list(compute.columns) == ["Relative to", "Peak", "MFU", "Source, or why it is unknown"]
    assert len(compute) == len(memory) == 6
    assert all(compute["Source, or why it is unknown"].str.len() > 10)
    unknown = compute[compute["Peak"] == "—"]
    assert set(unknown["Relative to"]) == {"custom peak"}
    assert set(unknown["MFU"]) == {"—"}


def test_an_earlier_run_of_the_same_device_gives_the_measured_ceiling(page, store):
    kept(store, on_gpu(ok(5e-4, shape=LARGE, dtype="bf16")))
    slower = kept(store, on_gpu(ok(1e-3, shape=LARGE, dtype="bf16")))
    assert "50.0 % of the measured peak" in texts(page("benchmark", run=slower, peak="measured_ceiling").markdown)


def test_above_100_percent_is_explained_in_the_sentence_and_the_table(page, store):
    fast = on_gpu(ok(2 * 4096**3 / 175e12, shape=LARGE, dtype="bf16"), "NVIDIA GeForce RTX 4090", held_hz=2.73e9)
    app = page("benchmark", run=kept(store, fast))
    why = "106 % of the datasheet peak: it ran at 2.73 GHz, and the peak is rated for 2.52 GHz"
    assert why in texts(app.markdown)
    assert why in app.dataframe[0].value["Remarks"][0]
    assert any(
        why in one.proto.spec or why.encode() in one.proto.SerializeToString() for one in app.get("vega_lite_chart")
    )


def test_ones_own_numbers_are_choices_too(page, store, gpu_run):
    device = store.load(gpu_run).results[0].environment.device
    for unit in ("matrix", "vector"):
        store.set_own_peak(OWNER, device, peak=Peak("bf16", unit, 5e14, "own", "a talk"))
    store.set_own_bandwidth(OWNER, device, bandwidth=Bandwidth(4e12, "own", "a talk"))
    app = page("benchmark", run=gpu_run)
    assert offered(app)[0] == "Custom peak (default)"
    assert "a talk" in app.table[1].value.iloc[-1].to_list()
    app = page("benchmark", run=gpu_run, peak="datasheet")
    assert "of the datasheet peak" in texts(app.markdown)


def test_an_operation_without_flops_is_compared_with_the_memory(page, store):
    n = 10**8
    copied = on_gpu(ok(2e-4, operation="copy", shape=Shape.of(n=n)))
    app = page("benchmark", run=kept(store, copied))
    assert offered(app)[0] == "Datasheet's memory bandwidth (default)"
    assert len(app.table) == 1


def test_nothing_measured_offers_no_choice(page, store):
    run = kept(store, replace(ok(), status="skipped", reason="too slow", measurement=None))
    assert not [one for one in page("benchmark", run=run).selectbox if one.key == KEY]


def test_a_link_restores_baseline_and_explained_result_without_a_warning(page, store):
    run = kept(store, ok(2e-3, implementation="numpy"), ok(1e-3))
    explained = "100 × 100 × 100, numpy in fp32"
    app = page("benchmark", run=run, baseline="torch", explain=explained, chart="speedup")

    assert not app.warning
    assert "Speedup over torch" in app.get("vega_lite_chart")[0].proto.spec
    assert next(box for box in app.selectbox if box.label == "Result").value == explained


def test_the_baseline_follows_the_operation_and_not_the_order_of_arrival(page, store):
    run = kept(store, ok(1e-3), ok(2e-3, implementation="numpy"))
    assert next(box for box in page("benchmark", run=run).selectbox if box.label == "Speedup over").value == "numpy"


def test_a_baseline_the_run_has_not_is_named_with_the_accepted_ones(page, store):
    app = page("benchmark", run=kept(store, ok()), baseline="cupy")
    assert not app.exception
    assert "baseline 'cupy': expected torch, fp32" in texts(app.error)
