"""More than 100 % is never cut: every kind of peak says how it can be."""

from typing import get_args

import pytest

from gpuexplore.analysis.run.json_report import rows, run_report
from gpuexplore.analysis.utilization.best_results import why_above_bandwidth, why_above_peak
from gpuexplore.analysis.utilization.utilization import default_peak
from gpuexplore.core.model import Bandwidth, Experiment, Flag, Peak, PeakKind, Shape
from tests.analysis.made import analyzed, ok
from tests.analysis.utilization.test_peak_choice import on_gpu

LARGE = Shape.of(m=4096, k=4096, n=4096)
RATE = 2 * 4096**3


def geforce(fraction, held_hz):
    """Return a bf16 product on an RTX 4090 (165.2 TFLOP/s at 2.52 GHz) at `fraction` of its datasheet peak."""
    return on_gpu(
        ok(RATE / (fraction * 165.2e12), shape=LARGE, dtype="bf16"), "NVIDIA GeForce RTX 4090", held_hz=held_hz
    )


@pytest.mark.parametrize("kind", get_args(PeakKind))
def test_every_kind_is_explained_above_and_silent_below(kind):
    def said(flop_per_s):
        return why_above_peak(ok(1e-5), Peak("fp32", "matrix", flop_per_s, kind, "a test"))

    assert said(1e11).startswith("200 % of the ")
    assert said(1e11).endswith(".")
    assert said(4e11) is None


@pytest.mark.parametrize("kind", get_args(PeakKind))
def test_every_kind_of_bandwidth_is_explained_above_and_silent_below(kind):
    def said(bytes_per_s):
        return why_above_bandwidth(ok(1e-6), Bandwidth(bytes_per_s, kind, "a test"))

    assert "caches delivered part of the bytes, or " in said(1e10)
    assert said(1e12) is None


@pytest.mark.parametrize(
    ("fraction", "held_hz", "why"),
    [
        (1.05, 2.73e9, "it ran at 2.73 GHz, and the peak is rated for 2.52 GHz; at the measured clock it is 96.9 %"),
        (1.30, 2.73e9, "the clock it ran at, 2.73 GHz instead of 2.52 GHz, does not explain it"),
        (1.10, 2.10e9, "the measurement or the peak is wrong"),
        (1.05, None, "devices, GeForce cards above all, run faster than the clock their peak is rated for"),
        (1.40, None, "no device boosts so far past its rated clock, so the measurement or the peak is wrong"),
    ],
)
def test_a_datasheet_peak_is_explained_by_the_measured_clock_as_far_as_it_goes(fraction, held_hz, why):
    result = geforce(fraction, held_hz)
    assert why in why_above_peak(result, default_peak(result))


def test_without_a_peak_a_measurement_or_traffic_from_memory_there_is_nothing_to_explain():
    assert why_above_peak(ok(), None) is why_above_bandwidth(ok(), None) is None

    cached = ok(1e-9, size=10, spec={"cache_bytes": 10**6}, flags=[Flag("warm", "")])
    assert why_above_bandwidth(cached, Bandwidth(1.0, "own", "me")) is None


def test_the_sentence_stands_wherever_the_fraction_does():
    found, why = analyzed(geforce(1.05, 2.73e9)), "105 % of the datasheet peak: it ran at 2.73 GHz"
    experiment = Experiment("matmul", (LARGE,), ("bf16",), ("torch",))
    assert found.results[0].above_peak.startswith(why)
    assert rows(found)[0]["above_peak"].startswith(why)
    assert run_report(experiment, found)["results"][0]["peak"]["above"].startswith(why)
    assert f"torch in bf16 reached {why}" in str(found.summary)


def test_the_sentence_follows_the_choice_or_says_why_it_is_unknown():
    said = str(analyzed(geforce(1.05, 2.73e9), peak_kind="held_clock").summary)
    assert "96.9 % of the peak at the measured clock" in said
    assert "reached 105 % of the datasheet peak" in said

    said = str(analyzed(geforce(0.5, None), peak_kind="own").summary)
    assert "There is no MFU relative to the custom peak for torch in bf16: none entered for bf16" in said
