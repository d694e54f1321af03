"""More than 100 % is never cut: every kind of peak says how it can be."""

from typing import get_args

import pytest

from gpuexplore.analysis.run.derived import figures
from gpuexplore.analysis.run.flat_rows import rows
from gpuexplore.analysis.run.json_report import run_report
from gpuexplore.analysis.run.summary import summarize
from gpuexplore.analysis.utilization.above_peak import why_above_bandwidth, why_above_peak
from gpuexplore.analysis.utilization.peak_choice import Against
from gpuexplore.analysis.utilization.utilization import applicable_peak
from gpuexplore.model import Bandwidth, Experiment, Flag, Peak, PeakKind, Shape
from tests.analysis.made import ok
from tests.analysis.utilization.test_peak_choice import on_gpu

LARGE = Shape.of(m=4096, k=4096, n=4096)
RATE = 2 * 4096**3


def geforce(share, held_hz):
    """Return a bf16 product on an RTX 4090 (165.2 TFLOP/s at 2.52 GHz) at `share` of its datasheet peak."""
    return on_gpu(ok(RATE / (share * 165.2e12), shape=LARGE, dtype="bf16"), "NVIDIA GeForce RTX 4090", held_hz=held_hz)


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
    ("share", "held_hz", "why"),
    [
        (1.05, 2.73e9, "it held 2.73 GHz, and the peak is printed for 2.52 GHz; at the held clock it is 96.9 %"),
        (1.30, 2.73e9, "the clock it held, 2.73 GHz where 2.52 GHz is printed, explains too little"),
        (1.10, 2.10e9, "measurement or peak is wrong"),
        (1.05, None, "devices, GeForce cards most of all, run faster than the clock their peak is printed for"),
        (1.40, None, "no device boosts so far past its printed clock, so the measurement or the peak is wrong"),
    ],
)
def test_a_datasheet_is_explained_by_the_clock_that_was_held_as_far_as_it_goes(share, held_hz, why):
    result = geforce(share, held_hz)
    assert why in why_above_peak(result, applicable_peak(result))


def test_no_peak_and_no_measurement_need_no_explanation():
    assert why_above_peak(ok(), None) is why_above_bandwidth(ok(), None) is None


def test_the_sentence_stands_wherever_the_share_does():
    result, why = geforce(1.05, 2.73e9), "105 % of the datasheet peak: it held 2.73 GHz"
    experiment = Experiment("matmul", (LARGE,), ("bf16",), ("torch",))
    assert figures([result])[0].above_peak.startswith(why)
    assert rows([result])[0]["above_peak"].startswith(why)
    assert run_report(experiment, [result])["results"][0]["peak"]["above"].startswith(why)
    assert f"torch in bf16 reached {why}" in str(summarize([result]))


def test_the_sentence_follows_the_choice():
    said = str(summarize([geforce(1.05, 2.73e9)], against=Against("held_clock")))
    assert "96.9 % of the peak at the clock that was held" in said
    assert "reached 105 % of the datasheet peak" in said


def test_a_chosen_kind_that_is_unknown_has_its_reason_in_the_sentence():
    said = str(summarize([geforce(0.5, None)], against=Against("own")))
    assert "There is no MFU against the peak you entered for torch in bf16: you entered none for bf16" in said


def test_a_cached_result_is_not_above_the_memory():
    cached = ok(1e-9, size=10, spec={"cache_bytes": 10**6}, flags=[Flag("warm", "")])
    assert why_above_bandwidth(cached, Bandwidth(1.0, "own", "me")) is None
