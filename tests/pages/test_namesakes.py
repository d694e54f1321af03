"""Recordings of a processor on a machine whose other processor has the same name: nothing of them counts there."""

from dataclasses import replace

from gpuexplore.analysis.prediction import predict
from gpuexplore.analysis.prediction.calibration import calibrate, from_published, from_results
from gpuexplore.analysis.utilization import device_of
from gpuexplore.core.model import Bandwidth, Case, Shape
from gpuexplore.core.units import format_seconds
from gpuexplore.recorded import recorded_results
from tests.hardware.processors import ZEN_4, ZEN_5, ceilings
from tests.pages.conftest import texts

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
LEFT_OUT = "recorded results left out: another processor of this name"


def look(page):
    """Return the tables of the roofline, its captions, and what the what-if says of a product."""
    roofline = page("roofline", device="cpu", dtype="fp32")
    what_if = page("what-if", device="cpu", gpus="", dtype="fp32", op="matmul", shape=str(PRODUCT.shape))
    return len(roofline.dataframe), texts(roofline.caption), texts(what_if.markdown)


def test_recordings_of_another_processor_of_this_name_draw_no_point_and_predict_nothing(page, beat):
    beat("ready", SAME)
    tables, captions, said = look(page)
    assert tables == 2, "of results and of roofs"
    assert LEFT_OUT not in captions
    assert "fp32 takes" in said, "the recorded time"

    beat("ready", OTHER)
    tables, captions, said = look(page)
    assert tables == 3, "those of the example, and of roofs"
    assert LEFT_OUT in captions
    others = [result for _, result in recorded_results() if device_of(result).name != OTHER.name]
    found = predict(PRODUCT, OTHER, calibrate((*from_published(), *from_results(others, "recorded"))))
    assert f"On AMD EPYC (Zen 5), fp32 is predicted to take {format_seconds(found.time_s)}" in said
