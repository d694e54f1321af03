"""What the benchmark of predictions leaves out, and how it judges each way."""

import json
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from statistics import median

import pytest

from benchmarks.prediction import (
    GIVEN,
    Claim,
    as_json,
    by_us,
    claims,
    efficiencies_without,
    given_trials,
    judged_rows,
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

ROOT = Path(__file__).resolve().parents[2]
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


HEAD = "gpu_key,operation,dtype,shape,time_s,timing,conditions,source"


def rows_of_softmax(link, extra=""):
    row = next(row for row in published_measurements() if row.operation == "softmax")
    shape = f"m={row.shape['m']};n={row.shape['n']}"
    return f"{row.spec_key},softmax,{row.dtype},{shape},{row.time_s},{row.timing},{extra},{link}", row


def test_rows_of_a_file_are_judged_by_what_ships(tmp_path, capsys):
    text, row = rows_of_softmax("https://github.com/sitar-lab/NeuSight")
    (tmp_path / "rows.csv").write_text(f"{HEAD}\n{text}\n{text.replace('softmax', 'softmin')}\n", encoding="utf-8")

    (found,) = trials_of_rows(tmp_path / "rows.csv")
    assert (found.took_s, found.operation, found.timing) == (row.time_s, "softmax", row.timing)
    assert {OURS, "roofline"} <= set(found.guesses)
    assert '"softmax"' in as_json([found], ["operation"])
    assert "left out: rows.csv, line 3" in capsys.readouterr().err


def test_rows_of_anybody_are_summed_up_with_what_was_left_out(tmp_path):
    text, row = rows_of_softmax("https://example.org/results/softmax.csv")
    refused = (text.replace("softmax", "softmin", 1), text.replace("https", "ftp"), text.replace(row.spec_key, "t5"))
    (tmp_path / "rows.csv").write_text("\n".join([HEAD, text, *refused]), encoding="utf-8-sig")

    found = judged_rows(tmp_path / "rows.csv")

    assert {"rows": 1, "unpredicted": 0}.items() <= found.items()
    assert found["bias"] - 1 == pytest.approx(found["median"]) or 1 - found["bias"] == pytest.approx(found["median"])
    assert found["holds"] in {0.0, 1.0}
    assert {(group["by"], group["name"]) for group in found["by"]} >= {("operation", "softmax"), ("dtype", row.dtype)}
    assert [each.partition(":")[0] for each in found["refused"]] == [f"rows.csv, line {line}" for line in (3, 4, 5)]
    (tmp_path / "bad.csv").write_text("\n".join([HEAD, *refused]), encoding="utf-8")
    with pytest.raises(SystemExit, match="no row has a prediction"):
        judged_rows(tmp_path / "bad.csv")


def test_rows_are_judged_where_scipy_is_not_installed(tmp_path):
    text, _ = rows_of_softmax("https://example.org/results/softmax.csv")
    (tmp_path / "rows.csv").write_text(f"{HEAD}\n{text}\n", encoding="utf-8")
    file = str(tmp_path / "rows.csv")
    code = (
        "import sys\n"
        "sys.modules['scipy'] = sys.modules['scipy.optimize'] = None\n"
        "from benchmarks.prediction import main\n"
        f"sys.argv[1:] = ['--rows', {file!r}, '--json']\n"
        "main()"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)

    assert json.loads(found.stdout)["rows"] == 1


def test_rows_are_predicted_as_their_team_measures():
    rows = [row for row in published_measurements() if row.source.repository == "openxla/xla"][:20]
    claimed = list(map(measured_claim, rows))

    assert {claim.conditions.calls for claim in claimed} == {"cold"}
    strangers = [replace(claim, conditions=replace(claim.conditions, team="")) for claim in claimed]
    widths = [
        [trial.guesses[OURS].high_s / trial.guesses[OURS].low_s for trial in by_us(some)]
        for some in (claimed, strangers)
    ]
    assert all(known < unknown for known, unknown in zip(*widths, strict=True))


def test_given_measurements_of_a_device_its_others_are_predicted_with_and_without_them():
    rows = [row for row in published_measurements() if row.spec_key == "gtx-1080-ti"]
    trials = given_trials("gtx-1080-ti", 10)

    assert len(trials) == len(rows) - 10
    assert all(trial.guesses.keys() == {OURS, GIVEN} for trial in trials)
    before, after = (errors_of(trials, way) for way in (OURS, GIVEN))
    assert after.median < before.median
