"""What the benchmark of predictions leaves out, and how it judges each way."""

from dataclasses import replace
from importlib.util import find_spec
from statistics import median

import pytest

from benchmarks.prediction import (
    GIVEN,
    Claim,
    as_json,
    claims,
    efficiencies_without,
    given_trials,
    leave_out,
    left_out_trials,
    measured_claim,
    trials_of_rows,
)
from benchmarks.prediction_errors import OURS, Errors, Guess, decade, errors_of, grouped, table, trial_of
from benchmarks.prediction_peers import HEURISTICS, heuristics_s, neusight_s, roofline_s
from gpuexplore.analysis.prediction.gpu import fitted
from gpuexplore.core.model import Case, Shape
from gpuexplore.hardware import row_of, table_device
from gpuexplore.recorded.published import published_measurements
from tests.unchanged import PACKAGE, heavy

PRODUCT = Case("matmul", Shape.of(m=1000, k=1000, n=1000), "fp32", "torch", "t4")
ADDITION = Case("vector_add", Shape.of(n=1_000_000), "fp32", "torch", "t4")


def trial(took_s, case=PRODUCT, **guesses):
    return replace(trial_of(case, table_device("t4"), took_s, origin="measured"), guesses=guesses)


@pytest.mark.parametrize(("case", "name"), [(PRODUCT, "1e09 FLOP"), (ADDITION, "1e07 B")])
def test_work_is_counted_in_decades_of_flops_or_bytes(case, name):
    assert decade(case) == name


def test_errors_of_a_way_are_compared_on_the_rows_it_shares_with_ours():
    trials = [
        trial(1.0, **{OURS: Guess(1.1, 0.9, 1.3), "peer": Guess(1.4)}),
        trial(1.0, **{OURS: Guess(0.9, 1.1, 1.3), "peer": Guess(0.6)}),
        trial(1.0, **{OURS: Guess(9.0, 8.0, 10.0)}),
    ]

    assert errors_of(trials[:2], OURS) == Errors(2, pytest.approx(0.1), pytest.approx(0.1), 0.5, 1)
    assert errors_of(trials, "peer") == Errors(2, pytest.approx(0.4), pytest.approx(0.4), None, pytest.approx(4))
    assert errors_of(trials, "nobody") is None


def test_a_table_has_a_line_for_each_group_and_one_for_those_of_few_rows():
    product, addition = trial(1.0, **{OURS: Guess(2.0)}), trial(1.0, ADDITION, **{OURS: Guess(1.5)})
    said = table([product, product, product, addition], "operation").splitlines()

    assert list(grouped([product, addition], "operation")) == ["matmul", "vector_add"]
    assert [line.split("|")[0].strip() for line in said] == ["by operation", "matmul", "of fewer than 3 rows", "all"]
    assert "100.0%" in said[1]
    assert "50.0%" in said[2]


def test_the_roofline_is_the_slower_of_arithmetic_and_memory():
    t4 = table_device("t4")

    assert roofline_s(PRODUCT, t4) == pytest.approx(2e9 / t4.peak("fp32", "vector").flop_per_s)
    assert roofline_s(ADDITION, t4) == pytest.approx(12e6 / t4.bandwidth.bytes_per_s)
    assert roofline_s(PRODUCT, replace(t4, bandwidth=None)) is None


def test_nothing_of_a_device_that_is_left_out_is_calibrated_on():
    everything, without = leave_out(frozenset(), fitted()), leave_out(frozenset({"p40", "v100-sxm2-32gb"}), fitted())
    keys = {device.spec_key for device in everything.devices}

    assert {"p40", "v100-sxm2-32gb"} <= keys
    assert {device.spec_key for device in without.devices} == keys - {"p40", "v100-sxm2-32gb"}


def test_one_efficiency_is_that_of_the_other_devices():
    known = [
        Claim(
            "measured", replace(PRODUCT, device=key), table_device(key), roofline_s(PRODUCT, table_device(key)) / share
        )
        for key, share in (("t4", 0.1), ("p40", 0.5), ("l4", 0.7))
    ]

    assert efficiencies_without(known)["t4", "matmul"] == pytest.approx(median([0.5, 0.7]))
    assert efficiencies_without(known[:1])["t4", "matmul"] is None


@heavy(f"{PACKAGE}.*", files=("benchmarks/neusight.csv",))
def test_a_claim_is_predicted_without_its_device_and_without_its_architecture():
    known = [claim for claim in claims() if claim.key == "h100-pcie-80gb"]
    trials = left_out_trials(known)

    assert {row_of(claim.device).architecture for claim in known} == {"Hopper"}
    for found in trials:
        assert {OURS, "architecture left out", "roofline"} <= set(found.guesses)
        ours, without = found.guesses[OURS], found.guesses["architecture left out"]
        assert without.high_s / without.low_s > ours.high_s / ours.low_s  # less is known


def test_neusight_predicts_every_operation_of_a_network_that_was_measured_on_its_gpus():
    rows = [row for row in published_measurements() if "/label/NVIDIA_" in row.url]
    found = [neusight_s(claim.case, claim.device, claim.url) for claim in map(measured_claim, rows)]

    assert len(found) == 129
    assert None not in found
    assert neusight_s(PRODUCT, table_device("t4"), rows[0].url) is None
    assert neusight_s(PRODUCT, table_device("t4"), None) is None


def test_heuristics_of_nvidia_know_products_of_some_gpus_where_they_are_installed():
    case = Case("matmul", Shape.of(m=4096, k=4096, n=4096), "bf16", "torch", "h100-sxm5-80gb")
    found = heuristics_s(case, table_device("h100-sxm5-80gb"))

    assert (found is None) == (find_spec(HEURISTICS) is None)
    assert heuristics_s(ADDITION, table_device("h100-sxm5-80gb")) is None
    assert heuristics_s(PRODUCT, table_device("t4")) is None


def test_rows_of_a_file_are_judged_by_what_ships(tmp_path):
    row = next(row for row in published_measurements() if row.operation == "softmax")
    text = (
        f"{row.spec_key},softmax,{row.dtype},m={row.shape['m']};n={row.shape['n']},{row.time_s},{row.timing},,{row.url}"
    )
    head = "gpu_key,operation,dtype,shape,time_s,timing,conditions,source"
    (tmp_path / "rows.csv").write_text(f"{head}\n{text}\n", encoding="utf-8")
    (tmp_path / "bad.csv").write_text(f"{head}\n{text.replace('softmax', 'softmin')}\n", encoding="utf-8")

    (found,) = trials_of_rows(tmp_path / "rows.csv")
    assert (found.took_s, found.operation, found.timing) == (row.time_s, "softmax", row.timing)
    assert {OURS, "roofline"} <= set(found.guesses)
    assert '"softmax"' in as_json([found], ["operation"])
    with pytest.raises(SystemExit, match="softmin"):
        trials_of_rows(tmp_path / "bad.csv")


def test_given_measurements_of_a_device_its_others_are_predicted_with_and_without_them():
    rows = [row for row in published_measurements() if row.spec_key == "gtx-1080-ti"]
    trials = given_trials("gtx-1080-ti", 10)

    assert len(trials) == len(rows) - 10
    assert all(trial.guesses.keys() == {OURS, GIVEN} for trial in trials)
    before, after = (errors_of(trials, way) for way in (OURS, GIVEN))
    assert after.median < before.median
