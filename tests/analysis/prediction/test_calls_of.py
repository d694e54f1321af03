from dataclasses import replace
from statistics import median

import pytest

from gpuexplore.analysis.prediction import CALLS
from gpuexplore.analysis.prediction.calls import CALLS_WORDS, calls_of, in_calls
from gpuexplore.core.model import Contrast, Flag
from gpuexplore.recorded import recorded_results
from tests.analysis.made import failed, ok, with_contrasts

COLD = Flag("cold", "flushed")
ON_GPU = ok(20e-6, on="cuda:0", flags=[COLD, Flag("launch_bound", "short")])
REPLAYED = Contrast("graph", (5e-6, 6e-6, 7e-6))


def test_each_kind_has_words():
    assert list(CALLS_WORDS) == list(CALLS)


@pytest.mark.parametrize(
    ("result", "calls"),
    [
        (ok(on="cpu"), "queued"),
        (ON_GPU, "queued"),
        (ok(on="rocm:0", flags=[COLD]), "queued"),
        (ok(on="mps:0", flags=[COLD]), "single"),
        (ok(on="mps:0", flags=[Flag("warm", "called again")]), "queued"),
        (replace(ON_GPU, environment=None), "queued"),
    ],
)
def test_calls_are_queued_unless_the_host_waits_for_each(result, calls):
    assert calls_of(result) == calls


@pytest.mark.parametrize("calls", CALLS)
def test_on_a_cpu_a_time_stands_for_every_kind(calls):
    result = ok(on="cpu")

    assert in_calls(result, calls) == result


def test_gpu_was_measured_in_its_own_kind_and_in_no_other():
    assert in_calls(ON_GPU, "queued") == ON_GPU
    assert in_calls(ON_GPU, "single") is None
    assert in_calls(ON_GPU, "graph") is None


def test_replayed_graph_is_measured_in_the_kind_of_graphs():
    found = in_calls(with_contrasts(ON_GPU, Contrast("warm", (18e-6,)), REPLAYED), "graph")

    assert calls_of(found) == "graph"
    assert found.measurement.median_s == 6e-6
    assert found.measurement.contrasts == ()
    assert [flag.name for flag in found.flags] == ["warm"]


def test_docs_say_how_much_more_than_a_graph_a_pair_of_events_measured_on_the_recorded_h200():
    found = []
    for _, result in recorded_results():
        warm = (
            [other for other in result.measurement.contrasts if other.condition == "warm"] if is_of_h200(result) else ()
        )
        replayed = in_calls(result, "graph") if warm else None
        if replayed:
            found.append(round((warm[0].median_s - replayed.measurement.median_s) * 1e6, 1))

    assert (min(found), median(found), max(found), len(found)) == (-0.4, 2.7, 4.1, 37)


def is_of_h200(result):
    return result.measurement is not None and result.environment.device.name == "NVIDIA H200"


def test_graph_that_could_not_be_captured_and_a_case_that_failed_have_no_time():
    assert in_calls(with_contrasts(ON_GPU, Contrast("graph", reason="it allocates")), "graph") is None
    assert in_calls(replace(failed(), environment=ON_GPU.environment), "graph") is None
