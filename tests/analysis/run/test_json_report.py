import json
from math import inf, nan

import pytest

from gpuexplore.analysis.run.flat_rows import rows
from gpuexplore.analysis.run.json_report import run_report, strict
from gpuexplore.analysis.utilization.peak_choice import Against
from gpuexplore.model import Accuracy, Case, Contrast, Experiment, Flag, Result, Shape, Status
from tests.analysis.made import PEAKS, environment, failed, ok, with_contrasts

EXPERIMENT = Experiment("matmul", (Shape.of(m=100, k=100, n=100),), ("fp32",), ("numpy", "torch"))
RESULTS = (ok(4e-5, implementation="numpy", flags=[Flag("noisy", "IQR 12 %")]), ok(1e-5), failed(dtype="bf16"))
DESIGNED = {
    "case", "status", "reason", "flags", "measurement", "accuracy", "flop_count", "byte_count", "flop_per_s",
    "bytes_per_s", "peak", "mfu", "bandwidth_utilization", "speedup", "telemetry", "diagnosis",
}  # fmt: skip


@pytest.fixture
def report():
    return run_report(EXPERIMENT, RESULTS)


def test_report_has_the_designed_keys(report):
    assert set(report) == {"schema_version", "experiment", "environment", "results"}
    assert all(set(one) == DESIGNED for one in report["results"])


def test_shapes_are_objects(report):
    assert report["results"][0]["case"]["shape"] == {"m": 100, "k": 100, "n": 100}
    assert report["experiment"]["shapes"] == [{"m": 100, "k": 100, "n": 100}]


def test_figures_of_a_measured_case(report):
    one = report["results"][1]
    assert one["flop_per_s"] == pytest.approx(2e11)
    assert one["mfu"] == pytest.approx(0.2)
    assert one["peak"]["kind"] == "measured_ceiling"
    assert one["peak"]["bytes_per_s"] == 1e11
    assert one["speedup"]["baseline"] == "numpy"
    assert one["speedup"]["ratio"] == pytest.approx(4)
    assert one["measurement"]["n"] == 9


def test_a_case_without_a_measurement_still_has_its_work(report):
    one = report["results"][2]
    assert (one["status"], one["reason"]) == ("skipped", "too slow")
    assert one["flop_count"] == 2_000_000
    assert one["byte_count"] == 60_000
    assert one["measurement"] is one["flop_per_s"] is one["mfu"] is one["speedup"] is None


def test_every_result_has_its_diagnosis_with_evidence(report):
    assert [one["kind"] for one in report["results"][2]["diagnosis"]] == ["not_measured"]
    for one in (one for result in report["results"] for one in result["diagnosis"]):
        assert set(one) == {"kind", "sentence", "evidence", "severity"}


def test_share_and_diagnosis_are_held_against_the_same_ceiling():
    """The best of the run is a measured ceiling too: it is not above one that an earlier, slower run gave."""
    large, bare = Shape.of(m=2048, k=2048, n=2048), {"peaks": (), "bandwidth": None}
    earlier, now = ok(3e-2, shape=large, spec=bare), ok(2e-2, shape=large, spec=bare)
    against = Against("measured_ceiling", known=(earlier,))
    (one,) = run_report(EXPERIMENT, [now], against=against)["results"]
    assert one["mfu"] == pytest.approx(1)
    assert "over_peak" not in {found["kind"] for found in one["diagnosis"]}


def test_environment_lists_each_device_once(report):
    assert [one["id"] for one in report["environment"]["devices"]] == ["cpu"]
    assert report["environment"]["libraries"] == {"numpy": "2.4"}
    assert "device" not in report["environment"]


def test_what_differs_between_environments_is_null():
    results = (ok(), ok(on="cuda:0"))
    found = run_report(EXPERIMENT, results, environment("cuda:1"))["environment"]
    assert [one["id"] for one in found["devices"]] == ["cpu", "cuda:0", "cuda:1"]
    assert found["python"] == "3.12"


def test_without_any_environment_it_is_null():
    bare = Result(Case("matmul", Shape.of(m=1, k=1, n=1), "fp32", "torch", "cpu"), Status.CRASHED, "signal 11")
    found = run_report(EXPERIMENT, [bare])
    assert found["environment"] is None
    assert found["results"][0]["telemetry"] is None
    assert found["results"][0]["peak"]["flop_per_s"] is None


def test_json_is_strict():
    wrong = Result(RESULTS[2].case, Status.INCORRECT, "wrong", accuracy=Accuracy(inf, 1e-5))
    found = run_report(EXPERIMENT, [*RESULTS, wrong])
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["results"][3]["accuracy"] == {"relative_error": None, "tolerance": 1e-5, "within": False}


def test_strict_replaces_what_json_does_not_know():
    assert strict({"a": [nan, 1.0, inf], "b": "x"}) == {"a": [None, 1.0, None], "b": "x"}


def test_no_results_make_an_empty_report():
    assert run_report(EXPERIMENT, ())["results"] == []


def test_other_conditions_stand_in_the_report_and_in_columns():
    made = with_contrasts(ok(), Contrast("warm", (2e-6,)), Contrast("graph", reason="no graphs"))
    warm, graph = run_report(EXPERIMENT, [made])["results"][0]["measurement"]["contrasts"]
    (row,) = rows([made])

    assert (warm["condition"], warm["median_s"], warm["n"], warm["reason"]) == ("warm", 2e-6, 1, None)
    assert (graph["condition"], graph["median_s"], graph["reason"]) == ("graph", None, "no graphs")
    assert (row["contrast_cold_s"], row["contrast_warm_s"], row["contrast_graph_s"]) == (None, 2e-6, None)


def test_rows_have_the_same_columns_and_plain_values():
    found = rows(RESULTS, against=Against(own_peaks=PEAKS))
    assert len({tuple(one) for one in found}) == 1
    assert all(value is None or isinstance(value, str | int | float) for one in found for value in one.values())


def test_a_row_carries_axes_flags_and_figures():
    first, second, third = rows(RESULTS)
    assert (first["m"], first["n"], first["size"], first["flags"]) == (100, 100, "100 × 100 × 100", "noisy")
    assert second["speedup"] == pytest.approx(4)
    assert second["median_s"] == pytest.approx(1e-5)
    assert third["median_s"] is third["sample_count"] is third["mfu"] is None
