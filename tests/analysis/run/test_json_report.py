import json
from dataclasses import replace
from math import inf, nan

import pytest

from gpuexplore.analysis.run.json_report import rows, run_report, strict
from gpuexplore.core.model import Accuracy, Case, Contrast, Experiment, Flag, Phase, Result, Shape, Status
from tests.analysis.made import PEAKS, analyzed, custom, failed, ok, with_contrasts, with_phases

EXPERIMENT = Experiment("matmul", (Shape.of(m=100, k=100, n=100),), ("fp32",), ("numpy", "torch"))
RESULTS = (ok(4e-5, implementation="numpy", flags=[Flag("noisy", "IQR 12 %")]), ok(1e-5), failed(dtype="bf16"))
DESIGNED = {
    "case", "status", "reason", "flags", "measurement", "accuracy", "flop_count", "byte_count", "flop_per_s",
    "bytes_per_s", "peak", "mfu", "bandwidth_utilization", "energy_j", "bound", "speedup", "seed",
    "telemetry", "diagnosis",
}  # fmt: skip


def report_of(*results, **asked):
    return run_report(EXPERIMENT, analyzed(*results, **asked))


@pytest.fixture
def report():
    return report_of(*RESULTS)


def test_report_has_the_designed_keys_and_shapes_as_objects(report):
    top = {"schema_version", "run", "experiment", "environment", "comparison", "machines", "summary", "results"}
    assert set(report) == top
    assert all(set(result) == DESIGNED for result in report["results"])

    assert report["comparison"] == {"baseline": "numpy", "peak_kind": None}
    assert report["summary"]["headline"].startswith("At 100 × 100 × 100, torch in fp32 is the fastest: 10.0 µs")
    assert report["summary"]["details"]

    assert report["results"][0]["case"]["shape"] == {"m": 100, "k": 100, "n": 100}
    assert report["experiment"]["shapes"] == [{"m": 100, "k": 100, "n": 100}]


def test_figures_peak_and_speedup_of_a_measured_case(report):
    result = report["results"][1]
    assert result["flop_per_s"] == pytest.approx(2e11)
    assert result["mfu"] == pytest.approx(0.2)
    assert (result["bound"], result["measurement"]["n"]) == ("compute", 9)
    assert (result["peak"]["kind"], result["peak"]["bytes_per_s"]) == ("measured_ceiling", 1e11)
    assert result["speedup"]["baseline"] == "numpy"
    assert result["speedup"]["ratio"] == pytest.approx(4)


def test_a_case_without_a_measurement_still_has_its_work(report):
    result = report["results"][2]
    assert (result["status"], result["reason"]) == ("skipped", "too slow")
    assert (result["flop_count"], result["byte_count"]) == (2_000_000, 60_000)
    assert result["measurement"] is result["flop_per_s"] is result["mfu"] is result["speedup"] is None


def test_every_result_has_its_diagnosis_with_evidence(report):
    diagnoses = [diagnosis for result in report["results"] for diagnosis in result["diagnosis"]]
    assert [diagnosis["kind"] for diagnosis in report["results"][2]["diagnosis"]] == ["not_measured"]
    assert all(set(diagnosis) == {"kind", "sentence", "evidence", "severity"} for diagnosis in diagnoses)


def test_mfu_and_diagnosis_are_relative_to_the_same_measured_peak():
    """The best of the run is a measured peak too: it is not above one that an earlier, slower run gave."""
    large, bare = Shape.of(m=2048, k=2048, n=2048), {"peaks": (), "bandwidth": None}
    earlier, now = ok(3e-2, shape=large, spec=bare), ok(2e-2, shape=large, spec=bare)
    (result,) = report_of(now, peak_kind="measured_ceiling", earlier=(earlier,))["results"]
    assert result["mfu"] == pytest.approx(1)
    assert "over_peak" not in {diagnosis["kind"] for diagnosis in result["diagnosis"]}


def test_environment_lists_each_device_once(report):
    assert [device["id"] for device in report["environment"]["devices"]] == ["cpu"]
    assert report["environment"]["libraries"] == {"numpy": "2.4"}
    assert "device" not in report["environment"]


def test_what_differs_between_environments_is_null():
    here, there = ok(), ok(on="cuda:0")
    there = replace(there, environment=replace(there.environment, commit="def"))
    found = report_of(here, there)["environment"]
    assert [device["id"] for device in found["devices"]] == ["cpu", "cuda:0"]
    assert found["python"] == "3.12"
    assert found["commit"] is None


def test_without_any_environment_it_is_null():
    bare = Result(Case("matmul", Shape.of(m=1, k=1, n=1), "fp32", "torch", "cpu"), Status.CRASHED, "signal 11")
    found = report_of(bare)
    assert found["environment"] is None
    assert found["results"][0]["telemetry"] is None
    assert found["results"][0]["peak"]["flop_per_s"] is None


def test_json_is_strict_and_replaces_what_it_does_not_know():
    wrong = Result(RESULTS[2].case, Status.INCORRECT, "wrong", accuracy=Accuracy(inf, 1e-5))
    found = report_of(*RESULTS, wrong)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    accuracy = {"relative_error": None, "tolerance": 1e-5, "worst": None, "within": False}
    assert found["results"][3]["accuracy"] == accuracy

    assert strict({"a": [nan, 1.0, inf], "b": "x"}) == {"a": [None, 1.0, None], "b": "x"}


def test_no_results_make_an_empty_report_and_recorded_ones_are_not_in_it():
    assert report_of()["results"] == []
    assert report_of()["comparison"] == {"baseline": None, "peak_kind": None}

    assert report_of(*RESULTS, recorded=(ok(1e-6),)) == report_of(*RESULTS)


def test_other_conditions_stand_in_the_report_and_in_columns():
    made = with_contrasts(ok(), Contrast("warm", (2e-6,)), Contrast("graph", reason="no graphs"))
    warm, graph = report_of(made)["results"][0]["measurement"]["contrasts"]
    (row,) = rows(analyzed(made))

    assert (warm["condition"], warm["median_s"], warm["n"], warm["reason"]) == ("warm", 2e-6, 1, None)
    assert (graph["condition"], graph["median_s"], graph["reason"]) == ("graph", None, "no graphs")
    assert (row["contrast_cold_s"], row["contrast_warm_s"], row["contrast_graph_s"]) == (None, 2e-6, None)


def test_phases_stand_in_the_report_with_their_rates_and_in_columns():
    shape = Shape.of(batch=100, inputs=3, hidden=10, outputs=2, layers=2)
    made = with_phases(ok(operation="mlp_step", shape=shape), Phase("forward", (1e-3,)), Phase("backward", reason="no"))
    forward, backward = report_of(made)["results"][0]["measurement"]["phases"]
    (row,) = rows(analyzed(made))

    assert (forward["name"], forward["median_s"], forward["n"]) == ("forward", 1e-3, 1)
    assert (forward["flop_count"], forward["flop_per_s"]) == (10_000, 1e7)
    assert (backward["median_s"], backward["flop_count"], backward["flop_per_s"]) == (None, 14_000, None)
    assert (row["phase_forward_s"], row["phase_backward_s"], row["phase_optimizer_s"]) == (1e-3, None, None)


def test_rows_have_the_same_columns_with_axes_flags_and_figures():
    found = rows(analyzed(*RESULTS, custom_peaks=custom(*PEAKS)))
    assert len({tuple(row) for row in found}) == 1
    assert all(value is None or isinstance(value, str | int | float) for row in found for value in row.values())
    assert {row["peak_kind"] for row in found} == {"own"}

    first, second, third = rows(analyzed(*RESULTS))
    assert (first["m"], first["n"], first["size"], first["flags"]) == (100, 100, "100 × 100 × 100", "noisy")
    assert second["speedup"] == pytest.approx(4)
    assert second["median_s"] == pytest.approx(1e-5)
    assert third["median_s"] is third["sample_count"] is third["mfu"] is None
