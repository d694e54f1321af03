"""Recordings of a processor on a machine whose other processor has the same name: nothing of them counts there."""

import threading
from contextlib import contextmanager
from dataclasses import replace

import pytest
from playwright.sync_api import expect

from gpuexplore.analysis.prediction import predict
from gpuexplore.analysis.prediction.calibration import calibrate, from_published
from gpuexplore.core.model import Bandwidth, Case, Shape
from gpuexplore.core.units import format_seconds
from gpuexplore.recorded import recorded_results
from gpuexplore.store import Supervisor, open_store
from scripts.app_server import database_of, served
from tests.browser.test_roofline import points
from tests.browser.test_what_if import headline
from tests.hardware.processors import ZEN_4, ZEN_5, ceilings

pytestmark = pytest.mark.browser

BEAT_S = 1.0
MACHINE = Supervisor("made", host="made", scope="made", pid=1, version="made")
RECORDED = next(result.environment.device for _, result in recorded_results() if result.environment)
# The recording never said who it is of: a processor of its name and ceilings is taken for it, a faster one is not.
SAME = replace(RECORDED, identity=ZEN_4.identity)
OTHER = replace(
    SAME,
    identity=ZEN_5.identity,
    peaks=ceilings(2.2 * RECORDED.peak("fp32", "matrix").flop_per_s),
    bandwidth=Bandwidth(1.3 * RECORDED.bandwidth.bytes_per_s, "measured_ceiling", "STREAM triad"),
)
PRODUCT = Case("matmul", Shape.of(m=1024, k=1024, n=1024), "fp32", "torch", "cpu")


@pytest.fixture(scope="module")
def shared_home(tmp_path_factory):
    return tmp_path_factory.mktemp("namesakes")


@pytest.fixture(scope="module")
def app(shared_home):
    """Serve the app on a machine that a test makes: nothing is measured here."""
    with served(shared_home, warm=False, settings={"GPUEXPLORE_SUPERVISOR": "external"}) as found:
        yield found


@contextmanager
def machine_of(home, processor):
    """Report a machine with one processor, alive, until the block ends."""
    over = threading.Event()

    def beat():
        with open_store(database_of(home)) as store:
            while not over.is_set():
                store.heartbeat(MACHINE, state="ready", devices=(processor,))
                over.wait(BEAT_S)

    beating = threading.Thread(target=beat)
    beating.start()
    try:
        yield
    finally:
        over.set()
        beating.join()


def look(page, app):
    """Return what is drawn of the recordings: points of the roofline, the what-if's sentence, and what was left out."""
    page.goto(f"{app}/roofline?device=cpu&dtype=fp32")
    expect(page.locator("[data-testid=stVegaLiteChart] svg")).to_be_visible()
    drawn, left_out = points(page).count(), page.get_by_text("recorded results left out").all_inner_texts()
    page.goto(f"{app}/what-if?device=cpu&dtype=fp32&op=matmul&shape=m%3D1024,k%3D1024,n%3D1024")
    expect(headline(page)).to_contain_text("On AMD EPYC")
    return drawn, " ".join(left_out), headline(page).inner_text()


def test_recordings_of_another_processor_of_this_name_draw_no_point_and_predict_nothing(page, app, shared_home):
    with machine_of(shared_home, SAME):
        drawn, left_out, said = look(page, app)
    assert drawn > 0
    assert left_out == ""
    assert "fp32 takes" in said, "the recorded time"

    with machine_of(shared_home, OTHER):
        drawn, left_out, said = look(page, app)
    assert drawn == 0
    assert "another processor of this name" in left_out
    found = predict(PRODUCT, OTHER, calibrate(from_published()))
    assert f"On AMD EPYC (Zen 5), fp32 is predicted to take {format_seconds(found.time_s)}" in said
