"""Recorded runs on pages: shown with their provenance, or drawn beside a live run, and never mistaken for one."""

import json
from itertools import product

import pytest

from gpuexplore.core.model import Experiment, Peak
from tests.analysis.made import device
from tests.hardware.processors import ZEN_4, ZEN_5, measured_on
from tests.pages.conftest import OWNER, texts
from tests.pages.test_benchmark import button, charts
from tests.recorded import made

COMPARE = "Compare with"


@pytest.fixture
def recorded(folder):
    """Ship a recording of a GPU, named `gpu`, of matmul in fp32 and bf16."""
    made.write(folder / "gpu.jsonl")


def markdown(app):
    return texts([*app.markdown, *app.caption])


def compare(app):
    return next((one for one in app.selectbox if one.label == COMPARE), None)


def series(app, number=0):
    """Return the series that a chart names, in its legend or, without one, at the ends of its lines."""
    spec = json.loads(charts(app)[number].proto.spec)
    colors = [one["encoding"]["color"] for one in spec["layer"] if "color" in one["encoding"]]
    if colors[0]["legend"]:
        return set(colors[0]["legend"]["values"])
    return {name for name in colors[0]["scale"]["domain"] if name in ("numpy", "torch") or "recorded" in name}


@pytest.mark.usefixtures("recorded")
def test_recorded_run_opens_like_a_finished_one_under_a_badge_with_its_provenance(page):
    app = page("benchmark", run="recorded-gpu-matmul")

    assert not app.exception
    assert not app.warning
    for fact in (
        "Recorded",
        "on **a made-up GPU**, 2026-01-02, by a tester, commit `0123456789ab`",
        "At 128 × 128 × 128",
        "**Recorded**: 2026-01-02 03:04:05 UTC by a tester",
        "gpuexplore 1 record, commit `0123456789ab`, Python 3.12, linux",
        "**Command**: `gpuexplore record matmul --by 'a tester' --out made.jsonl`",
        "`cuda:0` a made-up GPU, driver 999.1",
        "torch 2.0",
        "here on cpu",  # it was measured elsewhere
    ):
        assert fact in markdown(app)
    assert len(app.dataframe[0].value) == 8
    (chart,) = charts(app)
    assert "recorded: a made-up GPU" in json.loads(chart.proto.spec)["description"]
    assert series(app) == {"numba-cuda · recorded: a made-up GPU", "torch · recorded: a made-up GPU"}
    assert compare(app) is None
    assert "Cancel" not in [button.label for button in app.button]
    assert app.session_state["settings.sizes"] == "64,128"
    assert app.session_state["settings.devices"] == ["cpu"]
    assert "differ" not in markdown(app)
    assert not button(app, "Run here").disabled


@pytest.mark.usefixtures("recorded")
def test_an_unknown_recorded_run_is_not_found_and_offers_a_new_one(page):
    app = page("benchmark", run="recorded-gpu-softmax")

    assert "no recorded run 'recorded-gpu-softmax'" in texts(app.warning)
    button(app, "Start with a new run").click().run()
    assert "run" not in app.query_params


def test_an_interrupted_recording_says_how_far_it_got(page, folder):
    made.write(folder / "gpu.jsonl", made.lines()[:4])

    assert "after 3 of 8 points" in texts(page("benchmark", run="recorded-gpu-matmul").info)


@pytest.mark.usefixtures("recorded")
def test_a_live_run_is_alone_until_somebody_asks(page, finished):
    app = page("benchmark", run=finished)

    assert compare(app).value == ""
    assert compare(app).options == ["None", "recorded: a made-up GPU, 2026-01-02"]
    assert series(app) == {"numpy", "torch"}
    assert "on **a made-up GPU**" not in markdown(app)


@pytest.mark.usefixtures("recorded")
def test_a_chosen_recording_joins_the_charts_and_the_url_and_is_named(page, finished):
    app = page("benchmark", run=finished)
    compare(app).select("gpu").run()

    assert not app.exception
    assert "gpu" in app.query_params["with"]
    assert series(app) == {
        *("numpy · cpu", "torch · cpu"),
        *("numba-cuda · recorded: a made-up GPU", "torch · recorded: a made-up GPU"),
    }
    assert "Hollow points and thin lines are **recorded** on **a made-up GPU**, 2026-01-02, by a tester" in markdown(
        app
    )


@pytest.mark.usefixtures("recorded")
def test_a_link_restores_the_comparison_and_the_choice_takes_it_away(page, finished):
    app = page("benchmark", run=finished, **{"with": "gpu"})
    assert "torch · recorded: a made-up GPU" in series(app)

    compare(app).select("").run()
    assert series(app) == {"numpy", "torch"}
    assert "with" not in app.query_params
    assert "Hollow points" not in markdown(app)


@pytest.mark.usefixtures("recorded")
def test_sentences_and_table_speak_of_the_live_run_alone(page, finished):
    share = {"run": finished, "chart": "share"}
    alone, both = page("benchmark", **share), page("benchmark", **share, **{"with": "gpu"})

    assert len(both.dataframe[0].value) == len(alone.dataframe[0].value) == 8
    headline = next(one.value for one in alone.markdown if one.value.startswith("####"))
    assert headline in [one.value for one in both.markdown]


@pytest.mark.usefixtures("recorded")
def test_a_comparison_with_what_is_not_there_is_named(page, finished):
    app = page("benchmark", run=finished, **{"with": "h100"})

    assert not app.exception
    assert "recording 'h100': expected those of matmul: gpu" in texts(app.warning)
    assert series(app) == {"numpy", "torch"}


@pytest.mark.usefixtures("folder")
def test_without_recordings_there_is_no_choice_but_a_bad_link_is_named(page, finished):
    assert compare(page("benchmark", run=finished)) is None
    app = page("benchmark", run=finished, **{"with": "gpu"})
    assert "recording 'gpu': expected those of matmul: none" in texts(app.warning)


@pytest.mark.usefixtures("recorded")
def test_only_the_dtypes_of_the_run_are_drawn_and_the_rest_is_said(page, store, experiment, results):
    fp32 = Experiment("matmul", experiment.shapes, ("fp32",), experiment.implementations)
    mine = [result for result in results if result.case.dtype == "fp32"]
    app = page("benchmark", run=store.record(fp32, OWNER, results=mine), **{"with": "gpu"})

    assert "Only the dtypes of this run are drawn." in markdown(app)


@pytest.mark.usefixtures("recorded")
def test_a_growing_run_can_be_compared_too(page, store, claimed, results, beat):
    beat("measuring")
    store.add_result(claimed, results[0])
    app = page("benchmark", run=claimed.run_id, **{"with": "gpu"})

    assert not app.exception
    assert "torch · recorded: a made-up GPU" in series(app)


@pytest.mark.usefixtures("recorded")
def test_an_empty_page_leads_to_a_recorded_run(page):
    app = page("benchmark")
    button(app, "Recorded on a made-up GPU, 2026-01-02: matrix multiplication").click().run()

    assert "on **a made-up GPU**" in markdown(app)


@pytest.mark.usefixtures("recorded")
def test_an_operation_nobody_recorded_leads_to_another_one(page):
    assert button(page("benchmark", op="softmax"), "Recorded on a made-up GPU, 2026-01-02: matrix multiplication")


@pytest.mark.usefixtures("folder")
def test_without_recordings_nothing_is_offered(page):
    assert not [one for one in page("benchmark").button if "recorded" in one.label]


def test_a_file_that_was_dropped_in_without_provenance_is_named_and_the_page_stays(page, folder):
    made.write(folder / "bad.jsonl", made.lines()[1:])
    app = page("benchmark")

    assert not app.exception
    assert "A recording is not shown. bad.jsonl, line 1: schema_version" in texts(app.warning)
    assert button(app, "Run 36 points")


@pytest.mark.usefixtures("recorded")
def test_a_custom_peak_is_never_compared_with_another_device(page, store, finished):
    for dtype, unit in product(("fp32", "bf16"), ("matrix", "vector")):
        store.set_own_peak(OWNER, device(), peak=Peak(dtype, unit, 2e12, "own", "a leaflet"))
    share = {"run": finished, "chart": "share"}
    alone, both = page("benchmark", **share), page("benchmark", **share, **{"with": "gpu"})

    assert "MFU, % of the custom peak" in charts(alone)[0].proto.spec
    assert "MFU, % of the peak" in charts(both)[0].proto.spec  # the device beside keeps its own


@pytest.mark.usefixtures("recorded")
def test_a_recorded_run_says_so_on_the_page_of_kernels_too(page):
    app = page("kernels", impl="numba-cuda-naive", run="recorded-gpu-matmul")

    assert not app.exception
    assert "on **a made-up GPU**, 2026-01-02, by a tester" in markdown(app)


def test_a_recording_of_another_processor_of_the_same_name_beside_a_run_says_so(page, store, folder):
    asked = made.experiment(on=("cpu",), implementations=("numpy", "torch"))
    made.write(folder / "zen4.jsonl", made.lines(asked, told=made.provenance(ZEN_4)))
    runs = {
        place.title: store.record(
            asked, OWNER, results=[measured_on(place, result) for result in made.results(asked, place)]
        )
        for place in (ZEN_4, ZEN_5)
    }

    said = {title: markdown(page("benchmark", run=run, **{"with": "zen4"})) for title, run in runs.items()}
    reason = "That is another processor of this name: it is Zen 4, not Zen 5"
    assert f"{reason}, so these results do not apply to the device of this run." in said["AMD EPYC (Zen 5)"]
    assert "another processor" not in said["AMD EPYC (Zen 4)"]
