"""`compare`: two runs beside each other, with an exit code for CI."""

import gzip
import json
from dataclasses import replace

import pytest

import gpuexplore as gx
from gpuexplore.cli import main
from gpuexplore.cli.output import EXIT_FAILED, EXIT_OK, EXIT_UNUSABLE
from gpuexplore.cli.run_command import OWNER
from gpuexplore.core.model import Experiment
from gpuexplore.recorded import recordings
from gpuexplore.store import open_store
from tests.analysis.made import ok


@pytest.fixture
def stored(home):
    """Return a function that stores a run of one case and returns its id."""

    def store_run(median_s, size=64):
        result = ok(median_s, size=size)
        result = replace(result, measurement=replace(result.measurement, between_processes=0.004))
        asked = Experiment("matmul", (result.case.shape,), ("fp32",), ("torch",))
        with open_store() as store:
            return store.record(asked, OWNER, results=[result])

    return store_run


def test_the_exit_code_tells_a_ci_job(stored, capsys):
    old, new = stored(1e-3), stored(1.2e-3)

    assert main(["compare", old, new]) == EXIT_OK
    assert main(["compare", old, new, "--fail-if", "slower"]) == EXIT_FAILED
    assert main(["compare", new, old, "--fail-if", "slower"]) == EXIT_OK
    assert main(["compare", new, old, "--fail-if", "different"]) == EXIT_FAILED
    assert main(["compare", old, old, "--fail-if", "different"]) == EXIT_OK
    out = capsys.readouterr().out
    assert "Of 1 case: 1 slower; geometric mean of the conclusive ones: 20.0 % slower." in out
    assert f"before: matmul 64, fp32 ({old})" in out


def test_json_markdown_and_the_api_say_the_same(stored, answered, capsys):
    old, new = stored(1e-3), stored(1.2e-3)
    code, found = answered("compare", old, new, "--json")

    assert code == EXIT_OK
    assert main(["compare", old, new, "--markdown"]) == EXIT_OK
    assert f"**{found['headline']}**" in capsys.readouterr().out
    assert gx.compare(old, new).headline == found["headline"]


def test_recordings_are_compared_by_run_and_by_file(stored, capsys, repository):
    recording = recordings()[0]
    run_id = recording.as_runs()[0].id
    path = repository / "gpuexplore" / "recorded" / "data" / f"{recording.name}.jsonl"

    assert main(["compare", run_id, str(path)]) == EXIT_OK

    out = capsys.readouterr().out
    assert "faster" not in out.splitlines()[-1]
    assert f"after:  {recording.title} ({path.name})" in out


def test_runs_without_a_common_case_are_no_success(stored, capsys):
    assert main(["compare", stored(1e-3), stored(1e-3, size=128)]) == EXIT_UNUSABLE

    said = capsys.readouterr()
    assert "The two runs have no case in common." in said.out
    assert "there is nothing to compare" in said.err


def test_a_packed_file_of_another_harness_is_compared(tmp_path, capsys):
    runs = [{"metadata": {}, "values": [second]} for second in (1e-3, 1.1e-3, 1.2e-3)]
    content = {"version": "1.0", "metadata": {"name": "sort"}, "benchmarks": [{"runs": runs}]}
    path = tmp_path / "sort.json.gz"
    path.write_bytes(gzip.compress(json.dumps(content).encode()))

    assert main(["compare", str(path), str(path)]) == EXIT_OK
    assert "sort" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("gone", "no run 'gone': check the link; expected ids of runs, and files that end in .json, .jsonl"),
        ("recorded-gone", "no recorded run 'recorded-gone'"),
        ("gone.jsonl", "file 'gone.jsonl': expected an existing file"),
        ("run.exe", "file 'run.exe': expected files that end in .json, .jsonl, and ids of runs"),
    ],
)
def test_what_is_no_run_is_named(stored, capsys, name, named):
    assert main(["compare", stored(1e-3), name]) == EXIT_UNUSABLE

    assert named in capsys.readouterr().err
