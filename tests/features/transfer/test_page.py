"""The page Transfers in each of its states."""

import json
from dataclasses import replace

import pytest

from gpuexplore.activity import of_kind
from gpuexplore.core.model import RunState
from gpuexplore.core.serialization import encode
from gpuexplore.hardware.nvml import Link
from gpuexplore.ui import session
from tests.analysis.made import device
from tests.features.transfer.analysis.made import observed
from tests.hardware.torch_answers import found_on
from tests.pages.conftest import OWNER, beat, compiler, home, page, store, texts, told

CHARTS = {"predicted": 3, "measured": 4}


def asked(operation="matmul"):
    return of_kind("transfer", {"operation": operation}, expected_s=30.0)


@pytest.fixture
def measured(store):
    """Return the id of an activity that was done."""
    run_id = store.submit(asked(), "somebody else")
    claim = store.claim("tests", {"cpu"})
    for part in observed():
        store.add_observation(claim, told(encode(part)))
    store.finish(claim, RunState.DONE)
    return run_id


def described(app):
    return [json.loads(chart.proto.spec)["description"] for chart in app.get("vega_lite_chart")]


def test_before_anything_is_measured_everything_is_predicted_and_says_so(page):
    app = page("transfers")

    assert not app.exception
    assert len(described(app)) == CHARTS["predicted"]
    kinds = [element.type for element in app.main]
    order = [kinds.index(kind) for kind in ("markdown", "vega_lite_chart", "selectbox", "metric")]
    assert order == sorted(order)
    assert "a made-up processor: predicted; Tesla T4: predicted" in texts(app.markdown)
    assert "15.8 GB/s theoretical" in texts(app.markdown)
    assert "Nothing measured on cpu yet" in texts(app.caption)
    assert [metric.label for metric in app.metric] == [
        "GPU wins from size",
        "Uses to break even at 256",
        "Transfer at 256",
    ]


def test_transfers_are_offered_on_no_device_that_torch_alone_finds(page, monkeypatch, tmp_path):
    monkeypatch.setattr(session, "discover", lambda: (found_on(tmp_path, "rocm"), device()))
    app = page("transfers")

    assert not app.exception
    assert "Nothing measured on cpu yet" in texts(app.caption)
    assert not [box for box in app.selectbox if box.label == "Measure on"]


def test_nothing_is_said_to_win_or_to_lose_while_the_peaks_of_this_cpu_are_unknown(page, beat):
    beat("ready", device(peaks=(), bandwidth=None))
    app = page("transfers")

    assert not app.metric
    said = "#### Transfers at 256 take 155 µs (predicted); from which size on Tesla T4 beats this CPU is unknown until"
    assert said in texts(app.markdown[:1])
    assert "a made-up processor: unknown, as its peaks are not measured yet" in texts(app.markdown)
    assert "the break-even size is unknown" in " ".join(described(app))


def test_page_is_drawn_again_once_the_peaks_of_this_cpu_are_measured(page, beat):
    beat("warming", device(peaks=(), bandwidth=None))
    assert "they appear in a few seconds" in texts(page("transfers").info)
    beat("warming", device())
    assert not page("transfers").info


def test_the_button_queues_the_measurement(page, store):
    app = page("transfers", op="vector_add")
    next(button for button in app.button if button.label == "Measure on cpu").click().run()

    assert not app.exception
    found = store.load_activity(store.claim("tests", {"cpu"}).run_id)
    assert (found.owner, found.activity) == (OWNER, asked("vector_add"))
    assert next(button for button in app.button if button.label == "Measure on cpu").disabled


def test_what_was_measured_is_shown_to_everybody_as_memory_copies(page, measured):
    app = page("transfers")

    assert not app.exception
    assert len(described(app)) == CHARTS["measured"]
    assert "Measured memory copies" in texts(app.subheader)
    assert "not transfers" in texts(app.caption)
    assert "a made-up processor: measured; Tesla T4: predicted" in texts(app.markdown)
    assert "Measure again on cpu" in [button.label for button in app.button]


@pytest.fixture
def gpu_measured(store, monkeypatch):
    """Put a GPU into the machine, with transfers that were measured."""
    gpu = device(device_id="cuda:0")
    monkeypatch.setattr(session, "discover", lambda: (device(), gpu))
    names = [f"torch {way}, pageable" for way in ("host to device", "device to host")]
    moves, *others = observed("cuda:0")
    readings = tuple(replace(reading, name=name) for name in names for reading in moves.readings)
    store.submit(of_kind("transfer", {"operation": "matmul"}, device="cuda:0", expected_s=30.0), OWNER)
    claim = store.claim("tests", {"cuda:0"})
    for part in (replace(moves, readings=readings, link=Link(4, 16)), *others):
        store.add_observation(claim, told(encode(part), gpu))
    store.finish(claim, RunState.DONE)


def test_a_gpu_of_this_machine_is_shown_as_measured_below_its_link(page, gpu_measured):
    app = page("transfers")

    assert not app.exception
    assert "Measured transfers" in texts(app.subheader)
    assert "PCIe 4.0 x16, 31.5 GB/s theoretical: measured from pageable memory" in texts(app.markdown)
    assert any("PCIe 4.0 x16: 31.5 GB/s" in words for words in described(app))
    assert "Predicted transfers" not in texts(app.subheader)


def test_a_failed_measurement_says_why(page, store):
    run_id = store.submit(asked(), OWNER)
    store.finish(store.claim("tests", {"cpu"}), RunState.FAILED, reason="no memory left")

    assert "no memory left" in texts(page("transfers", activity=run_id).error)


def test_a_link_restores_the_choices(page):
    app = page("transfers", op="vector_add", gpu="h100-sxm5-80gb", link="pcie3-x8", memory="pinned")

    assert not app.exception
    assert "PCIe 3.0 x8, 7.88 GB/s theoretical" in texts(app.markdown)
    assert "pinned memory, with an assumed 78.0 % of the peak" in texts(app.markdown)


@pytest.mark.parametrize(("name", "value"), [("link", "usb"), ("gpu", "voodoo"), ("size", "3"), ("op", "sort")])
def test_what_cannot_be_used_of_a_link_is_named_and_the_default_stands(page, name, value):
    app = page("transfers", **{name: value})

    assert not app.exception
    assert f"'{value}'" in texts(app.error)
    assert len(described(app)) == CHARTS["predicted"]
