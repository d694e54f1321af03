"""One analysis of a run: its results in order, who is compared with whom, and who leads."""

import subprocess
import sys
from dataclasses import replace

import pytest

from gpuexplore.analysis.model import Comparison
from gpuexplore.core.model import Bandwidth, Flag, Origin, Peak, Shape
from tests.analysis.made import NAME, alone, analyzed, custom, failed, ok

CUSTOM = Peak("fp32", "matrix", 1e10, "own", "me")
EMULATED = Flag("emulated", "no bf16 units")


def named(result, name):
    """Return `result` as of a device with another name."""
    device = replace(result.environment.device, name=name)
    return replace(result, environment=replace(result.environment, device=device))


def kinds(analyzed_result):
    return [diagnosis.kind for diagnosis in analyzed_result.diagnoses]


def sentence(analyzed_result, kind):
    return next(diagnosis.sentence for diagnosis in analyzed_result.diagnoses if diagnosis.kind == kind)


def test_results_stand_in_the_order_given_and_name_the_default_baseline():
    first, second, third = analyzed(ok(2e-5), failed(), ok(1e-5, dtype="bf16"), baseline="fp32").results
    assert first.mfu == pytest.approx(0.1)
    assert second.mfu is None
    assert third.speedup.ratio == pytest.approx(2)

    results = [ok(), ok(implementation="numpy")]
    assert analyzed(*results).comparison == Comparison("numpy", None)
    assert analyzed(*results, baseline="torch", peak_kind="own").comparison == Comparison("torch", "own")

    found = analyzed()
    assert found.results == found.at_largest_shape == found.ties == ()
    assert found.comparison == Comparison(None, None)
    assert found.summary.headline == "Nothing is measured yet."


def test_custom_peaks_are_of_one_device_and_never_of_another():
    (found,) = analyzed(ok(), custom_peaks=custom(CUSTOM)).results
    assert found.peak.kind == "own"

    here, there = ok(1e-5), named(ok(1e-5, on="cuda:0"), "another")
    found = analyzed(here, there, custom_peaks=custom(CUSTOM, bandwidth=Bandwidth(1e9, "own", "me")))
    assert [analyzed_result.peak.kind for analyzed_result in found.results] == ["own", "measured_ceiling"]
    assert [analyzed_result.bandwidth.kind for analyzed_result in found.results] == ["own", "measured_ceiling"]
    assert [analyzed_result.default_peak.flop_per_s for analyzed_result in found.results] == [1e10, 1e12]

    here, there = ok(), named(ok(on="cuda:0"), "another")
    found = analyzed(here, there, peak_kind="own", custom_peaks=custom(CUSTOM)).results
    assert (found[0].peak.peak, found[0].peak.reason) == (CUSTOM, None)
    assert found[1].peak.reason == "none entered for fp32 on another: add one on the page Devices"

    here, there = ok(1e-5), named(ok(1e-5, on="cuda:0"), "another")
    other = replace(CUSTOM, flop_per_s=4e11)
    found = analyzed(here, there, custom_peaks=custom(CUSTOM) | custom(other, on=there.environment.device))
    assert [analyzed_result.mfu for analyzed_result in found.results] == pytest.approx([20, 0.5])

    here, there = ok(1e-5), ok(1e-5, on="cpu:1", spec={"cache_bytes": 2000})
    found = analyzed(here, there, custom_peaks=custom(CUSTOM)).results
    assert here.environment.device.name == there.environment.device.name
    assert [analyzed_result.peak.kind for analyzed_result in found] == ["own", "measured_ceiling"]


def test_a_result_alone_has_everything_but_a_speedup():
    (in_run,) = analyzed(ok(1e-5)).results
    assert replace(in_run, speedup=None) == alone(ok(1e-5))
    assert in_run.speedup.ratio == 1


def test_results_at_the_largest_measured_shape_stand_from_fast_to_slow_and_the_fastest_is_explained_first():
    small, slow, fast = ok(1e-9, size=10), ok(2e-3), ok(1e-3, dtype="bf16")
    assert analyzed(small, slow, fast, failed(size=900)).headline_result.result is fast
    assert analyzed(failed(), failed(dtype="bf16")).headline_result.result == failed()
    assert analyzed().headline_result is None

    found = analyzed(small, slow, fast, failed(size=900))
    assert found.largest_shape == Shape.of(m=100, k=100, n=100)
    assert [analyzed_result.result for analyzed_result in found.at_largest_shape] == [fast, slow]


def test_siblings_are_of_one_shape_device_and_options():
    result, dtype, implementation = ok(), ok(dtype="bf16"), ok(implementation="numpy")
    others = [ok(size=64), ok(on="cuda:0"), ok(cache="cold")]
    found = analyzed(result, dtype, *others, implementation).results[0]
    assert found.siblings == (result, dtype, implementation)


@pytest.mark.parametrize("other", [{"size": 64}, {"on": "cuda:0"}, {"cache": "cold"}, {"implementation": "numpy"}])
def test_an_emulated_dtype_is_not_compared_across_shapes_devices_or_options(other):
    slow = analyzed(ok(0.3, dtype="bf16", flags=[EMULATED]), ok(1e-3, **other)).results[0]
    assert "is emulated, and converting limits it: no bf16 units" in sentence(slow, "emulated")


def test_an_emulated_dtype_is_compared_within_its_shape_and_device():
    results = [ok(0.3, dtype="bf16", flags=[EMULATED]), ok(1e-3), ok(1e-6, size=64), ok(1e-5, on="cuda:0")]
    slow = analyzed(*results).results[0]
    assert sentence(slow, "emulated").startswith("torch takes 300× as long in bf16 as in fp32")


def test_what_no_hardware_does_is_ranked_nowhere_and_compared_with_nothing():
    slow, impossible = (
        ok(5e-4, size=600),
        replace(ok(1e-6, size=600), case=replace(ok(size=600).case, implementation="numpy")),
    )
    found = analyzed(slow, impossible)

    assert [ranked.result for ranked in found.at_largest_shape] == [slow]
    assert [result.speedup for result in found.results] == [None, None]
    assert "takes" in found.summary.headline
    assert "so the measurement is wrong" in " ".join(found.summary.details)
    assert "excluded from rankings and comparisons" in " ".join(found.summary.details)


def test_diagnoses_are_those_of_the_result_itself():
    found = analyzed(ok(flags=[Flag("noisy", "20 %")]), ok(dtype="bf16")).results
    assert "noisy" in kinds(found[0])
    assert "noisy" not in kinds(found[1])


def test_labels_name_the_device_where_there_are_several_and_recorded_ones_by_their_names():
    assert analyzed(ok()).results[0].label == "torch in fp32"
    assert analyzed(ok(), ok(on="cuda:0")).results[1].label == "torch in fp32 on cuda:0"

    found = analyzed(ok(), recorded=(named(ok(on="cuda:0"), "A"), named(ok(on="cuda:1"), "B")))
    assert [analyzed_result.label for analyzed_result in found.recorded] == ["torch in fp32 on A", "torch in fp32 on B"]
    assert {analyzed_result.origin for analyzed_result in found.recorded} == {Origin.RECORDED}
    assert (found.results[0].origin, found.results[0].device_label) == (Origin.LIVE, "cpu")

    found = analyzed(ok(on="cuda:0"), ok(on="cuda:1"), origin=Origin.RECORDED)
    assert [analyzed_result.device_label for analyzed_result in found.results] == [
        f"{NAME} (cuda:0)",
        f"{NAME} (cuda:1)",
    ]


def test_recorded_results_change_no_sentence_and_have_a_baseline_of_their_own():
    run = [ok(4e-5, implementation="numpy"), ok(1e-5)]
    found = analyzed(*run, recorded=(ok(1e-9), ok(1.0, size=900)))
    assert found.summary == analyzed(*run).summary
    assert len(found.shown) == 4

    found = analyzed(ok(1e-5), recorded=(ok(8e-5, implementation="numpy"), ok(2e-5)), baseline="numpy")
    assert found.results[0].speedup is None
    assert found.recorded[1].speedup.ratio == pytest.approx(4)

    assert analyzed(ok(1e-3), ok(2e-3, implementation="numpy", cache="cold")).results[0].speedup is None


def test_analysis_needs_neither_pandas_nor_a_measured_library():
    code = (
        "import sys, gpuexplore.analysis.run.json_report, gpuexplore.analysis.utilization.best_results, "
        "gpuexplore.analysis.run.analyze, gpuexplore.analysis.run.estimate; "
        "print({'pandas', 'torch', 'numba', 'altair', 'streamlit'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_energy_is_power_times_time_where_the_driver_states_a_power():
    told = ok(2e-3)
    after = replace(told.environment.after, power_w=250.0)
    told = replace(told, environment=replace(told.environment, after=after))

    assert alone(told).energy_j == pytest.approx(0.5)
    assert alone(ok(2e-3)).energy_j is None
    assert alone(failed()).energy_j is None
