"""`runs`: what was measured before, listed, shown, named, deleted and written to files."""

import json

import pytest

import gpuexplore as gx
from gpuexplore.cli import main
from gpuexplore.cli.output import EXIT_OK, EXIT_UNUSABLE
from gpuexplore.cli.run_command import OWNER
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Experiment, Shape
from gpuexplore.jobs.run_sources import row_of
from gpuexplore.store import open_store
from tests.analysis.made import ok

SHAPES = {"matmul": Shape.of(m=64, k=64, n=64), "softmax": Shape.of(m=64, n=64)}
WEEKLY = ["matmul 64, fp32", "softmax 64, fp32"]


@pytest.fixture
def stored(home):
    """Store a run of the command line and one of a browser, and return their ids, the older first."""
    with open_store() as store:
        return [_record(store, "matmul", OWNER), _record(store, "softmax", "a browser")]


def _record(store, operation, owner):
    result = ok(1e-3, operation=operation, shape=SHAPES[operation])
    return store.record(Experiment(operation, (result.case.shape,), ("fp32",), ("torch",)), owner, results=[result])


@pytest.mark.parametrize("words", [["runs"], ["runs", "list", "--limit", "2"]])
def test_runs_are_listed_newest_first_with_what_they_reached(stored, capsys, words):
    assert main(words) == EXIT_OK

    heading, *lines = capsys.readouterr().out.splitlines()
    assert heading.split("  ")[0] == "run"
    assert [line.split()[0] for line in lines] == stored[::-1]
    assert "matmul 64, fp32" in lines[1]
    assert "FLOP/s" in lines[1]
    assert "clean" in lines[1]


def test_the_json_is_what_the_python_api_gives(stored, answered):
    code, rows = answered("runs", "--json")
    frame = gx.runs()

    assert code == EXIT_OK
    assert [row["id"] for row in rows] == list(frame["id"]) == stored[::-1]
    assert json.loads(frame.to_json(orient="records", double_precision=15)) == rows
    assert rows[1]["quality"] == "clean"
    assert rows[1]["rate"] == pytest.approx(2 * 64**3 / 1e-3)
    with open_store() as store:
        assert [row_of(run) for run in store.listed()] == rows  # what was worked out is kept


def test_filters_and_pages_are_those_of_the_app(stored, answered, capsys):
    matmul, softmax = stored
    main(["runs", "tag", matmul, "Lab, monday"])
    capsys.readouterr()

    assert [row["id"] for row in answered("runs", "--json", "--operation", "softmax")[1]] == [softmax]
    assert [row["id"] for row in answered("runs", "--json", "--tag", "lab", "--search", "64")[1]] == [matmul]
    assert answered("runs", "--json", "--device", "nothing like it")[1] == []
    assert list(gx.runs("softmax", limit=3)["title"]) == ["softmax 64, fp32"]
    assert list(gx.runs("nothing like it").columns) == list(gx.runs().columns)


def test_a_page_says_how_the_next_one_is_asked_for(stored, capsys, answered):
    assert main(["runs", "--limit", "1"]) == EXIT_OK

    number = capsys.readouterr().err.split("--before ")[1].strip()
    assert [row["id"] for row in answered("runs", "--json", "--before", number)[1]] == [stored[0]]


def test_a_run_is_named_noted_and_tagged_and_shown_with_that(stored, capsys):
    run_id, _ = stored
    for words in (("name", run_id, "Before the fan"), ("note", run_id, "cleaned on Monday"), ("tag", run_id, "lab")):
        assert main(["runs", *words]) == EXIT_OK
    capsys.readouterr()

    assert main(["runs", "show", run_id]) == EXIT_OK

    shown = capsys.readouterr().out
    for text in (f"Before the fan  ({run_id}", "cleaned on Monday", "#lab", "torch"):
        assert text in shown
    assert main(["runs", "name", run_id, ""]) == EXIT_OK
    assert WEEKLY[0] in capsys.readouterr().out


def test_what_a_browser_measured_is_changed_by_who_says_to_be_its_administrator(stored, capsys):
    _, theirs = stored

    assert main(["runs", "name", theirs, "mine"]) == EXIT_UNUSABLE
    assert "belongs to another user: only its owner can change it" in capsys.readouterr().err
    assert main(["runs", "delete", theirs]) == EXIT_UNUSABLE
    assert main(["runs", "name", theirs, "ours", "--admin"]) == EXIT_OK
    assert list(gx.runs()["title"]) == ["ours", WEEKLY[0]]


def test_a_deleted_run_comes_back(stored, capsys, answered):
    run_id, _ = stored

    assert main(["runs", "delete", run_id]) == EXIT_OK
    assert f"gpuexplore runs restore {run_id}" in capsys.readouterr().out
    assert len(answered("runs", "--json")[1]) == 1
    assert main(["runs", "show", run_id]) == EXIT_UNUSABLE
    assert "was deleted by its owner" in capsys.readouterr().err
    assert main(["runs", "restore", run_id]) == EXIT_OK
    capsys.readouterr()
    assert len(answered("runs", "--json")[1]) == 2


def test_a_run_is_written_to_a_file(stored, tmp_path, capsys):
    run_id, _ = stored

    assert main(["runs", "export", run_id, str(tmp_path / "run.json")]) == EXIT_OK
    assert json.loads((tmp_path / "run.json").read_text())["experiment"]["operation"] == "matmul"
    assert main(["runs", "export", run_id, str(tmp_path / "run.exe")]) == EXIT_UNUSABLE
    assert "file type '.exe': expected .html, .json, .csv, .parquet" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--operation", "gone"), "operation 'gone': expected"),
        (("--limit", "0"), "limit '0': expected 1 to 200"),
        (("show", "gone"), "no run 'gone': check the link"),
        (("delete", "gone"), "no run 'gone': check the link"),
        (("name", "gone", "x" * 121), "title '121 characters': expected at most 120"),
    ],
)
def test_bad_input_is_named(stored, capsys, words, named):
    assert main(["runs", *words]) == EXIT_UNUSABLE

    assert named in capsys.readouterr().err


def test_nothing_measured_is_said(home, capsys):
    assert main(["runs"]) == EXIT_OK

    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "gpuexplore: no run matches\n")


def test_the_api_names_what_it_does_not_accept(home):
    for bad in ({"operation": "gone"}, {"limit": True}, {"limit": 1.5}, {"limit": 201}, {"tag": 3}):
        (name,) = bad
        with pytest.raises(InvalidInput, match=name):
            gx.runs(**bad)
