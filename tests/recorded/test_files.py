"""Runs in files from other machines: what is exported is read back, and what cannot be is refused in a sentence."""

import json
from dataclasses import replace
from math import nan

import pytest

from gpuexplore.analysis.run.analyze import analyze
from gpuexplore.charts.exports import Exported, export
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Accuracy, Contrast, Experiment, Flag, Progress, Run, RunState, Shape, Status
from gpuexplore.recorded import recordings
from gpuexplore.recorded.files import MOST_BYTES, read_runs
from tests.analysis.made import failed, ok, with_contrasts

RIGHT = Accuracy(1e-8, 1e-7)
SHAPES = tuple(Shape.of(m=size, k=size, n=size) for size in (64, 128))
ASKED = Experiment("matmul", SHAPES, ("fp32",), ("numpy", "torch"))
RESULTS = (
    replace(ok(1e-3, size=64, implementation="numpy", flags=[Flag("noisy", "varied", 0.1)]), accuracy=RIGHT, seed=7),
    replace(with_contrasts(ok(5e-4, size=64), Contrast("cold", (1e-3, 2e-3))), accuracy=RIGHT),
    failed(Status.SKIPPED, "too slow", size=128, implementation="numpy"),
    replace(ok(4e-3, size=128), accuracy=RIGHT),
)
RUN = Run("abcdefghij", "ada", ASKED, RunState.DONE, Progress(4, 4), RESULTS, title="Before the fan")


@pytest.fixture
def report():
    """Return an exported report as JSON."""
    return json.loads(export(".json", Exported(ASKED, analyze(RESULTS), RUN)))


def read(report, name="lab.json"):
    return read_runs(name, json.dumps(report).encode())


def test_what_was_exported_is_read_back_with_title_and_origin(report):
    (run,) = read(report)

    assert run.experiment == ASKED
    assert run.results == RESULTS
    assert run.title == "Before the fan"
    assert run.origin == "lab.json, measured on a made-up processor"


def test_a_recording_gives_a_run_of_each_operation(repository):
    recording = recordings()[0]
    path = repository / "gpuexplore" / "recorded" / "data" / f"{recording.name}.jsonl"

    runs = read_runs(path.name, path.read_bytes())

    assert [run.experiment for run in runs] == list(recording.experiments)
    assert sum(len(run.results) for run in runs) == len(recording.results)


@pytest.mark.parametrize("title", [None, 3, "", "x" * 121, "bell \x07"])
def test_a_title_that_cannot_be_one_gives_way_to_the_default(report, title):
    report["run"]["title"] = title

    assert read(report)[0].title == "matmul 64 to 128, fp32"


def test_every_row_that_cannot_be_is_named_and_nothing_is_taken(report):
    rows = report["results"]
    rows[0]["measurement"]["samples_s"][0] = -1.0
    rows[1]["accuracy"]["relative_error"] = 1.0
    rows[2]["case"]["shape"]["m"] = 65
    del rows[3]["case"]

    with pytest.raises(InvalidInput) as refused:
        read(report)

    first, second, third, fourth = str(refused.value).splitlines()
    assert first.startswith("lab.json: result 1: ")
    assert "-1.0" in first
    assert second.startswith("lab.json: result 2: ok with an error of 1.0, beyond its tolerance")
    assert third == "lab.json: result 3: its case is not in the file's experiment"
    assert fourth == "lab.json: result 4: no 'case'"


def test_of_many_refused_rows_the_first_are_named(report):
    report["results"] = [{} for _ in range(12)]

    with pytest.raises(InvalidInput, match="result 5: no 'case'\n7 more rows were rejected"):
        read(report)


def changed(path, value):
    """Return what changes a report at a path of keys."""

    def change(report):
        *to, last = path
        place = report
        for key in to:
            place = place[key]
        place[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (changed(["schema_version"], 2), "schema_version of lab.json '2': expected 1"),
        (changed(["schema_version"], True), "schema_version of lab.json 'True'"),
        (changed(["results"], []), "lab.json contains no results"),
        (changed(["results"], {}), "results 'dict': expected lists"),
        (changed(["results"], [{}] * 5001), "file '5,001 rows': expected at most 5,000"),
        (changed(["experiment", "operation"], "gone"), "operation 'gone': expected"),
        (changed(["experiment", "dtypes"], ["fp99"]), "fp99"),
        (changed(["experiment"], 3), "experiment 'int': expected objects"),
        (changed(["environment", "devices", 0, "cores"], -2), "cores of cpu '-2': expected numbers above 0"),
        (changed(["environment", "devices", 0, "name"], "bell \x07"), "characters that can be shown"),
        (changed(["results", 0, "measurement", "samples_s", 0], "1e-3"), "samples_s"),
        (changed(["results", 1, "case"], RESULTS[0].case.device), "result 2: case 'str': expected objects"),
        (changed(["results", 0, "status"], "fine"), "result 1: "),
    ],
)
def test_what_a_report_cannot_say_is_named(report, change, named):
    change(report)

    with pytest.raises(InvalidInput) as refused:
        read(report)

    assert named in str(refused.value)


def test_a_case_that_stands_twice_is_named(report):
    report["results"][1] = report["results"][0]

    with pytest.raises(InvalidInput, match="result 2: its case appears twice"):
        read(report)


@pytest.mark.parametrize(
    ("name", "content", "named"),
    [
        ("lab.json", b"", "lab.json: invalid JSON at line 1"),
        ("lab.json", b'{"schema_version": 1,', "lab.json: invalid JSON at line 1"),
        ("lab.json", b"[1]", "lab.json: not a JSON object"),
        ("lab.json", json.dumps({"schema_version": nan}).encode(), "lab.json: number 'NaN': expected finite numbers"),
        ("lab.json", b'{"schema_version": 1}', "lab.json: no 'experiment'"),
        ("lab.json", b"\xff\xfe", "lab.json: not UTF-8 text: byte 0"),
        ("lab.json", b"[" * 100_000, "lab.json: brackets are nested too deep"),
        ("lab.json", b" " * (MOST_BYTES + 1), "expected at most 20,000,000"),
        ("lab.jsonl", b"\n" * 10**6, "file '1,000,000 rows': expected at most 5,000"),
        ("lab.jsonl", b"{}", "lab.jsonl, line 1: schema_version 'None'"),
        ("lab.exe", b"", "file type '.exe': expected .json, .jsonl"),
        ("lab\x07.json", b"", "characters that can be shown"),
    ],
)
def test_what_is_no_file_of_runs_is_refused_in_a_sentence(name, content, named):
    with pytest.raises(InvalidInput) as refused:
        read_runs(name, content)

    assert named in str(refused.value)
    assert "\x07" not in str(refused.value) or named == "characters that can be shown"
