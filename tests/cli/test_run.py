"""`run` and `record` with tiny sizes, measured in real processes."""

import csv
import json
import subprocess
import sys
from dataclasses import fields
from typing import get_args

import pandas as pd
import pytest

from gpuexplore.cli import main, run_command
from gpuexplore.cli.output import EXIT_FAILED, EXIT_OK, EXIT_UNUSABLE
from gpuexplore.core.model import SCHEMA_VERSION, PeakKind, Result, Status
from gpuexplore.measure.conditions.environment import git_commit
from gpuexplore.recorded import Provenance, validate
from gpuexplore.store import open_store
from tests.analysis.made import failed, ok
from tests.cli import strict

pytestmark = pytest.mark.slow
TINY = ("vector_add", "--size", "8,16", "--impl", "numpy", "--dtype", "fp32", "--device", "cpu", "--budget", "0.01")
COMMIT = git_commit() or "0123456789ab"  # a copy of the code may have no git
SAID = ("--by", "a tester", "--commit", COMMIT)
RESULT_KEYS = {
    *("case", "status", "reason", "flags", "measurement", "accuracy", "flop_count", "byte_count", "flop_per_s"),
    *("bytes_per_s", "peak", "mfu", "bandwidth_utilization", "speedup", "diagnosis"),
}
MEASUREMENT_KEYS = {
    *("median_s", "p20_s", "p80_s", "iqr_s", "ci95_s", "min_s", "n", "first_call_s", "samples_s"),
}


FLOP_COUNTS = {
    ".json": lambda path: [load["flop_count"] for load in strict.loads(path.read_text(encoding="utf8"))["results"]],
    ".csv": lambda path: pd.read_csv(path)["flop_count"].tolist(),
    ".parquet": lambda path: pd.read_parquet(path)["flop_count"].tolist(),
}


MEASURED = {}


@pytest.fixture
def measured_once(monkeypatch):
    """Measure each experiment for the first test that runs it, and return those results in the others."""
    measure = run_command.measure

    def remembered(experiment, *others):
        if experiment not in MEASURED:
            MEASURED[experiment] = measure(experiment, *others)
        return MEASURED[experiment]

    monkeypatch.setattr(run_command, "measure", remembered)


@pytest.mark.usefixtures("measured_once")
def test_run_as_json_has_the_keys_of_the_design(answered):
    code, told = answered("run", *TINY, "--json", "--no-save")

    assert code == EXIT_OK
    assert {"schema_version", "experiment", "environment", "results"} <= set(told)
    assert [one["case"]["shape"] for one in told["results"]] == [{"n": 8}, {"n": 16}]
    for one in told["results"]:
        assert set(one) >= RESULT_KEYS
        assert set(one["case"]) == {"operation", "shape", "dtype", "implementation", "device", "options"}
        assert (one["status"], one["reason"]) == ("ok", None)
        assert set(one["measurement"]) >= MEASUREMENT_KEYS
        assert one["measurement"]["n"] == len(one["measurement"]["samples_s"])
        assert set(one["accuracy"]) >= {"relative_error", "tolerance"}
        assert set(one["peak"]) >= {"flop_per_s", "bytes_per_s", "kind", "source"}
        assert one["flop_count"] == one["case"]["shape"]["n"]
        assert all(set(found) >= {"kind", "sentence", "evidence"} for found in one["diagnosis"])


@pytest.mark.usefixtures("measured_once")
@pytest.mark.parametrize("kind", get_args(PeakKind))
def test_the_kind_of_peak_is_chosen_and_named_or_null_with_its_reason(answered, kind):
    _, told = answered("run", "matmul", *TINY[1:], "--peak", kind, "--json", "--no-save")

    for one in told["results"]:
        peak = one["peak"]
        assert peak["kind"] in (kind, None)
        assert (peak["kind"] is None) == (one["mfu"] is None) == bool(peak["unknown"])
        assert (peak["bandwidth_kind"] is None) == bool(peak["bandwidth_unknown"])


def test_a_kind_of_peak_that_does_not_exist_is_named_before_anything_is_measured(capsys):
    assert main(["run", *TINY, "--peak", "best", "--no-save"]) == EXIT_UNUSABLE

    assert "kind of peak 'best': expected datasheet, formula, held_clock, measured_ceiling" in capsys.readouterr().err


def test_run_as_text_prints_a_table_and_is_saved_for_the_app(capsys):
    assert main(["run", *TINY]) == EXIT_OK

    told = capsys.readouterr()
    heading, *rows = told.out.splitlines()
    assert " ".join(heading.split()) == "size dtype implementation device time speedup rate MFU roof status"
    assert [row.split()[:5] for row in rows[:2]] == [["n", "=", size, "fp32", "numpy"] for size in ("8", "16")]
    assert told.err.splitlines()[-2].startswith("[2/2] vector_add n=")
    with open_store() as store:
        saved = store.load(told.err.rpartition("?run=")[2].split()[0])
    assert [result.status for result in saved.results] == [Status.OK, Status.OK]


def test_run_as_text_says_why_each_sentence_once_and_with_its_evidence(capsys, monkeypatch):
    monkeypatch.setattr(run_command, "measure", lambda *_: (ok(5e-4, size=600),))

    assert main(["run", "matmul", "--size", "600", "--impl", "torch", "--no-save"]) == EXIT_OK

    printed = capsys.readouterr().out
    why = printed.partition("What limits torch in fp32 at 600 × 600 × 600:\n")[2].splitlines()
    assert why[0].startswith("- torch in fp32 is compute-bound and close to the limit, 86.4 % of the measured peak")
    assert why[1].startswith("  0.864 TFLOP/s of 1.00 TFLOP/s")
    assert printed.count("is compute-bound") == 1


def test_the_baseline_asked_for_is_that_of_the_json_and_of_the_file(tmp_path, capsys, monkeypatch):
    measured = (ok(2e-3, implementation="numpy"), ok(1e-3))
    monkeypatch.setattr(run_command, "measure", lambda *_: measured)
    path = tmp_path / "run.csv"
    asked = ["run", "matmul", "--size", "100", "--dtype", "fp32", "--impl", "numpy,torch", "--no-save"]

    assert main([*asked, "--baseline", "torch", "--out", str(path), "--json"]) == EXIT_OK

    report = json.loads(capsys.readouterr().out)
    assert [result["speedup"]["baseline"] for result in report["results"]] == ["torch", "torch"]
    assert [row["baseline"] for row in csv.DictReader(path.read_text().splitlines())] == ["torch", "torch"]


def test_run_as_text_says_why_there_is_no_time(capsys, monkeypatch):
    monkeypatch.setattr(run_command, "measure", lambda *_: (failed(),))

    main(["run", "matmul", "--size", "100", "--impl", "torch", "--no-save"])

    assert "- torch in fp32 was skipped for the reason below" in capsys.readouterr().out


@pytest.mark.usefixtures("measured_once")
@pytest.mark.parametrize("suffix", FLOP_COUNTS)
def test_file_has_the_results_and_a_run_that_is_not_to_be_saved_leaves_no_database(tmp_path, home, suffix):
    path = tmp_path / f"out{suffix}"

    assert main(["run", *TINY, "--no-save", "--out", str(path)]) == EXIT_OK

    assert FLOP_COUNTS[suffix](path) == [8, 16]
    assert not list(home.rglob("*.db")) + list(home.rglob("*.sqlite*"))


def test_a_run_of_nothing_but_cases_that_cannot_run_has_their_reasons_and_fails(answered):
    code, told = answered("run", *TINY, "--dtype", "tf32", "--json", "--no-save")

    assert code == EXIT_FAILED
    assert {one["status"] for one in told["results"]} == {"unsupported"}
    assert all("not a matmul" in one["reason"] and one["measurement"] is None for one in told["results"])


def test_failed_case_is_exit_code_1(monkeypatch, answered):
    def fail(experiment, *_):
        return tuple(Result(case, Status.INCORRECT, "wrong") for case in experiment.cases())

    monkeypatch.setattr(run_command, "measure", fail)

    assert answered("run", *TINY, "--json", "--no-save")[0] == 1


def read_recording(path):
    return [strict.loads(line) for line in path.read_text(encoding="utf8").splitlines()]


def assert_is_recording(path, by):
    recording = validate(path)
    told = recording.provenance
    assert (told.recorded_by, told.commit) == (by, COMMIT)
    assert told.recorded_utc.endswith("+00:00")
    assert told.libraries["numpy"]
    assert [device.id for device in told.devices] == ["cpu"]
    assert [tuple(result.case.shape) for result in recording.results_of("vector_add")] == [(8,), (16,)]
    assert all(result.status is Status.OK and result.environment.libraries["numpy"] for result in recording.results)


def test_record_writes_where_the_numbers_come_from_and_a_result_a_line_and_check_sums_it_up(tmp_path, capsys):
    path = tmp_path / "out.jsonl"

    assert main(["record", *TINY, *SAID, "--out", str(path)]) == EXIT_OK

    assert_is_recording(path, "a tester")
    header, *_ = read_recording(path)
    assert set(header) == {field.name for field in fields(Provenance)} | {"schema_version", "experiments"}, "no host"
    assert str(tmp_path) not in path.read_text(encoding="utf8")
    assert header["schema_version"] == SCHEMA_VERSION
    assert header["command"] == (
        "gpuexplore record vector_add --size 8,16 --dtype fp32 --impl numpy --device cpu --budget 0.01 "
        "--by 'a tester' --out out.jsonl"
    )
    capsys.readouterr()
    assert main(["record", "--check", str(path)]) == EXIT_OK
    told = capsys.readouterr().out
    assert told.startswith("out: recorded 20")
    assert " by a tester, gpuexplore " in told
    assert "vector_add: 2 of 2 cases" in told
    assert "status: 2 ok" in told


BARE = """
import sys
BLOCKED = {"streamlit", "sqlalchemy", "alembic", "altair", "pandas", "pyarrow", "psutil", "pynvml", "platformdirs",
           "threadpoolctl", "ml_dtypes", "typer", "click"}

class Bare:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Bare())
sys.argv[0] = "gpuexplore"
import runpy
runpy.run_module("gpuexplore", run_name="__main__", alter_sys=True)
"""


def on_a_bare_machine(repository, *words):
    command = [sys.executable, "-W", "error", "-c", BARE, *words]
    return subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False, timeout=300)


def test_record_runs_on_a_bare_machine(tmp_path, repository):
    path = tmp_path / "out.jsonl"

    done = on_a_bare_machine(repository, "record", *TINY, *SAID, "--out", str(path))

    assert done.returncode == EXIT_OK, done.stderr
    assert_is_recording(path, "a tester")


def test_every_implementation_that_a_bare_machine_has_is_recorded(tmp_path, repository):
    path = tmp_path / "out.jsonl"
    words = ("matmul", "--size", "8", "--device", "cpu", "--dtype", "fp32,bf16", "--budget", "0.01")

    done = on_a_bare_machine(repository, "record", *words, *SAID, "--out", str(path))

    assert done.returncode == EXIT_OK, done.stderr
    header, *results = read_recording(path)
    assert "torch" in header["libraries"]
    found = {
        (result["case"]["implementation"], result["case"]["dtype"]): (result["status"], result["reason"])
        for result in results
    }
    assert found.pop(("numpy", "bf16")) == ("unsupported", "NumPy has no bf16: pip install ml_dtypes")
    assert set(found) == {
        *(("numpy", "fp32"), ("numba-cpu", "fp32"), ("numba-cpu", "bf16"), ("torch", "fp32"), ("torch", "bf16"))
    }
    assert {status for status, _ in found.values()} == {"ok"}


def test_what_a_library_prints_below_python_is_no_part_of_the_json(answered, monkeypatch):
    monkeypatch.setenv("ONEDNN_VERBOSE", "1")

    code, told = answered(
        "run", "matmul", "--size", "64", "--dtype", "bf16", "--impl", "torch", "--device", "cpu", "--json", "--no-save"
    )

    assert (code, [result["reason"] for result in told["results"]]) == (EXIT_OK, [None])
