"""The Roofline page in each of its states."""

from dataclasses import asdict, replace

import pytest

from gpuexplore.core.model import Experiment, Shape
from gpuexplore.hardware import ACCELERATORS
from gpuexplore.ui import roofline, session
from gpuexplore.ui.roofline import LEFT, _run_of
from tests.analysis.made import device, ok
from tests.hardware.processors import OLD_ZEN_4, ZEN_4, ZEN_5, measured_on
from tests.pages.conftest import OWNER, spec, texts


def chosen(app):
    return {one.label: one.value for one in app.selectbox}


def from_column(app):
    return set(app.dataframe[0].value["From"])


def test_own_runs_lie_below_the_roofs_of_this_machine(page, finished):
    app = page("roofline")

    assert not app.exception
    assert "Roofline. Flat roofs: fp32, matrix units 1.00 TFLOP/s" in spec(app)["description"]
    assert "In fp32 the ridge point is at **10.0 FLOP/byte**" in texts(app.markdown)
    assert "Of 8 results" in texts(app.markdown)
    assert set(app.dataframe[0].value["Run"]) == {finished}
    assert list(app.dataframe[1].value["Roof"])[:4] == [
        "fp32, matrix units",
        "bf16, matrix units",
        "fp32, vector units",
        "Memory",
    ]


def test_without_a_run_the_roofs_are_shown_and_the_way_to_one(page):
    app = page("roofline")

    assert "None of your runs is on this roofline yet" in texts(app.caption)
    assert "No CUDA device was found in this machine" in texts(app.caption)
    (box,) = [box for box in app.selectbox if box.label == "Device"]
    assert box.options[0] == "a made-up processor (this machine, cpu)"
    assert len(box.options) == 1 + len(ACCELERATORS)
    assert any(one.label == "Run a benchmark" for one in app.button)


def test_without_any_run_recorded_ones_of_a_gpu_are_drawn_as_an_example(page):
    app = page("roofline")

    assert [header.value for header in app.subheader] == ["a made-up processor"]
    shown = "H100 SXM5 80GB, by gpuexplore on another machine. a made-up processor follows below."
    assert shown in texts(app.caption)
    words = [element.value for element in app.main if element.type == "markdown"]
    assert "up processor** · all dtypes" in words[0], "the choices, then what the example says"
    assert words[1].startswith("#### H100 SXM5 80GB: of ")
    assert from_column(app) <= {"recorded", "published"}
    assert not page("roofline", recorded="off").subheader
    assert not page("roofline", runs="none").subheader


def test_runs_of_others_are_shown_when_asked_for(page, store, experiment, results):
    store.record(experiment, "somebody else", results=results)

    first = page("roofline")  # without own runs: the control says whose are drawn
    assert {one.label: one.value for one in first.selectbox}["Runs"] == "all"
    assert "Points: runs of all users of this server." in texts(first.caption)
    assert len(first.dataframe[0].value) == 8
    assert "None of your runs is on this roofline yet" in texts(page("roofline", runs="mine").caption)
    assert "Runs are hidden" in texts(page("roofline", runs="none").caption)


def test_dtype_and_operation_narrow_what_is_drawn(page, finished):
    app = page("roofline", dtype="bf16", op="matmul")

    assert {case.rpartition(" ")[2] for case in app.dataframe[0].value["Case"]} == {"bf16"}
    assert not any(one.startswith("fp32") for one in app.dataframe[1].value["Roof"])
    assert len(page("roofline", op="triad").dataframe) == 1


def test_copy_has_no_place_and_that_is_said(page, store):
    result = ok(operation="copy", implementation="numpy", shape=Shape.of(n=100))
    store.record(Experiment("copy", (Shape.of(n=100),), ("fp32",), ("numpy",)), OWNER, results=[result])

    assert "1 result without FLOPs, such as copies, is not drawn" in texts(page("roofline").caption)


def test_device_without_peaks_says_how_they_come(page, monkeypatch):
    monkeypatch.setattr(session, "discover", lambda: (device(peaks=(), bandwidth=None),))

    app = page("roofline")

    assert "No roof of a made-up processor is known" in texts(app.info)
    assert [chart.key for chart in app.get("vega_lite_chart")] == ["chart.roofline.h100-sxm5-80gb"]  # the example
    assert any(one.label == "Run a benchmark" for one in app.button)


def test_device_of_the_table_shows_its_roofs_and_what_others_published(page):
    app = page("roofline", device="h100-sxm5-80gb")

    assert "No measurements of H100 SXM5 80GB on this server" in texts(app.info)
    assert "The points are results recorded elsewhere by gpuexplore and published by others." in texts(app.info)
    assert from_column(app) == {"published", "recorded"}
    assert "Hollow points were not measured on this server" in texts(app.caption)
    assert not any(one.label.startswith("Measure this device") for one in app.button)


def test_device_of_the_table_without_published_results_says_so(page):
    app = page("roofline", device="gtx-1650")

    assert "No result from elsewhere matches these choices" in texts(app.info)


def what_its_page_shows(row):
    """Return each fact that a row of the table has or lacks, and each of its formats, for its vendor."""
    facts = {(name, value not in (None, (), {}, "")) for name, value in asdict(row).items()}
    return {(row.vendor, shown) for shown in (*facts, *row.rates, *row.derived.values())}


def one_of_each():
    """Return devices of which each shows something that none before it does."""
    seen, found = set(), []
    for row in ACCELERATORS:
        shown = what_its_page_shows(row)
        if not shown <= seen:
            found.append(row.key)
        seen |= shown
    return found


@pytest.mark.parametrize("key", one_of_each())
def test_every_kind_of_accelerator_has_its_roofline(page, key):
    """All of them: `tests/analysis/roofline/test_roofs.py` finds their roofs, `test_roofline_chart.py` draws them."""
    app = page("roofline", device=key)

    assert not app.exception
    assert not app.error


def test_results_recorded_on_a_device_of_the_table_are_told_apart_from_published_ones(page, monkeypatch):
    result = ok(5e-3, size=2000, dtype="bf16")  # 667 FLOP/byte, right of the ridge at 295
    there = replace(result.environment.device, name="NVIDIA H100", spec_key="h100-sxm5-80gb")
    recorded = replace(result, environment=replace(result.environment, device=there))
    monkeypatch.setattr(roofline, "recorded_results", lambda: (("a recording", recorded),))
    monkeypatch.setattr(roofline, "run_id", lambda *_: "rec")

    app = page("roofline", device="h100-sxm5-80gb")

    assert "results recorded elsewhere by gpuexplore and published by others" in texts(app.info)
    assert from_column(app) == {"recorded", "published"}
    roofs = app.dataframe[1].value.set_index("Roof")
    assert roofs.loc["best matmul in bf16, matrix units", "Source"].startswith("recorded: Matrix multiplication, 2,000")


def test_recorded_results_of_another_processor_of_this_name_are_not_drawn_and_the_page_says_why(page, monkeypatch):
    recorded = measured_on(OLD_ZEN_4, ok(5e-2, size=1000))
    monkeypatch.setattr(roofline, "recorded_results", lambda: (("a recording", recorded),))
    monkeypatch.setattr(roofline, "run_id", lambda *_: "rec")
    drawn = {}
    for processor in (ZEN_4, ZEN_5):
        monkeypatch.setattr(session, "discover", lambda found=processor: (found,))
        drawn[processor.title] = page("roofline")

    assert from_column(drawn["AMD EPYC (Zen 4)"]) == {"recorded"}
    assert len(drawn["AMD EPYC (Zen 5)"].dataframe) == 1
    assert "1 recorded results left out: another processor of this name" in texts(drawn["AMD EPYC (Zen 5)"].caption)


def test_recorded_results_can_be_hidden(page, monkeypatch):
    monkeypatch.setattr(roofline, "recorded_results", lambda: (("a recording", ok(size=200)),))
    monkeypatch.setattr(roofline, "run_id", lambda recording, _: f"of {recording}")

    shown, hidden = page("roofline"), page("roofline", recorded="off")

    assert from_column(shown) == {"recorded"}
    assert set(shown.dataframe[0].value["Run"]) == {"of a recording"}
    assert len(hidden.dataframe) == 1


def test_gpu_of_this_machine_is_a_device_too(page, monkeypatch):
    gpu = replace(device(device_id="cuda:0"), name="a made-up GPU")
    monkeypatch.setattr(session, "discover", lambda: (device(), gpu))

    app = page("roofline", device="cuda:0")

    assert not app.exception
    assert not app.error
    assert "No CUDA device" not in texts(app.caption)


def test_bad_values_of_the_url_are_named_with_the_accepted_ones(page):
    app = page("roofline", device="nonsense", dtype="fp9", op="divide", runs="yours", recorded="maybe")
    told = texts(app.error)

    assert not app.exception
    assert "device 'nonsense': expected a name in the list below" in told
    assert "dtype 'fp9': expected all, fp32, bf16" in told
    assert "op 'divide': expected all, matmul" in told
    assert "runs 'yours': expected mine, all, none" in told
    assert "recorded 'maybe': expected on, off" in told
    assert chosen(app)["Device"] == "cpu"


def test_click_on_measure_queues_products_and_a_triad_and_shows_their_progress(page, store):
    app = page("roofline")
    next(one for one in app.button if one.label == "Measure this device's roofs").click().run()

    assert not app.exception
    triad, product = store.history(OWNER)
    assert (product.experiment.operation, triad.experiment.operation) == ("matmul", "triad")
    assert app.query_params["measuring"] in (f"{product.id}.{triad.id}", [f"{product.id}.{triad.id}"])
    assert sum(one.label == "Cancel" for one in app.button) == 2


def test_roofs_that_were_measured_are_told(page, finished):
    app = page("roofline", measuring=finished)

    assert "Matrix multiplication: measured" in texts(app.caption)


def test_unknown_run_of_roofs_is_told(page):
    assert "no run 'gone': check the link" in texts(page("roofline", measuring="gone").warning)


def test_more_results_than_the_chart_takes_are_told(page, finished, monkeypatch):
    for module in (roofline, session):
        monkeypatch.setattr(module, "MOST_RESULTS", 8)

    app = page("roofline")

    assert "Only the newest 8 results are shown" in texts(app.caption)


@pytest.mark.parametrize(
    ("event", "run"),
    [
        ({"selection": {"opened": [{"run": "abc"}]}}, "abc"),
        ({"selection": {"opened": [{"run": None}]}}, None),
        ({"selection": {"opened": []}}, None),
        ({"selection": {}}, None),
        ({}, None),
    ],
)
def test_only_a_point_with_a_run_opens_one(event, run):
    assert _run_of(event) == run


def test_back_from_a_run_gives_the_roofline_its_choices_again_but_only_once(page):
    left = {"dtype": "bf16", "recorded": "off"}
    app = page("roofline")
    app.session_state[LEFT] = ("abc", left)
    app.query_params["run"] = "abc"
    app.run()

    assert dict(app.query_params.items()) == left
    assert LEFT not in app.session_state


HOSTS = ("lab1", "lab2")


def test_two_machines_on_one_database_each_show_their_own_results(page, store, beat):
    for host, processor, size in (("lab1", ZEN_4, 600), ("lab2", ZEN_5, 700)):
        beat("ready", processor, name=host)
        result = measured_on(processor, ok(1e-2, size=size))
        store.record(Experiment("matmul", (result.case.shape,), ("fp32",), ("torch",)), OWNER, results=[result])

    sizes = {host: page("roofline", device=f"{host}/cpu", recorded="off").dataframe[0].value["Shape"] for host in HOSTS}
    assert [list(sizes[host]) for host in HOSTS] == [["600 × 600 × 600"], ["700 × 700 × 700"]]
