"""`import`: runs from files of other machines."""

import json

import gpuexplore as gx
from gpuexplore.cli import main
from gpuexplore.cli.output import EXIT_OK, EXIT_UNUSABLE
from gpuexplore.store import open_store
from tests.recorded.test_files import RESULTS, RUN, report

__all__ = ["report"]  # a fixture


def test_a_report_and_a_recording_are_kept_with_their_origin(report, repository, tmp_path, capsys, home):
    (tmp_path / "lab.json").write_text(json.dumps(report))
    recording = next((repository / "gpuexplore" / "recorded" / "data").glob("*.jsonl"))

    assert main(["import", str(tmp_path / "lab.json"), str(recording)]) == EXIT_OK

    frame = gx.runs()
    assert len(capsys.readouterr().out.splitlines()) == len(frame) > 1
    assert frame["title"].iloc[-1] == RUN.title
    assert frame["origin"].iloc[-1] == "lab.json, measured on a made-up processor"
    with open_store() as store:
        assert store.load(frame["id"].iloc[-1]).results == RESULTS
        assert store.measured_results(RESULTS[0].environment.device) == ()


def test_what_is_refused_is_named_and_the_other_files_are_kept(report, tmp_path, capsys, home):
    (tmp_path / "good.json").write_text(json.dumps(report))
    report["results"][0]["measurement"]["samples_s"][0] = -1.0
    (tmp_path / "bad.json").write_text(json.dumps(report))
    files = [str(tmp_path / name) for name in ("bad.json", "gone.json", "good.json")]

    assert main(["import", *files]) == EXIT_UNUSABLE

    said = capsys.readouterr()
    assert "gpuexplore: bad.json: result 1: " in said.err
    assert "gone.json': expected a readable file (No such file" in said.err
    assert len(gx.runs()) == 1


def test_an_exported_run_comes_back_as_it_was(report, tmp_path, capsys, home):
    (tmp_path / "lab.json").write_text(json.dumps(report))
    main(["import", str(tmp_path / "lab.json")])
    run_id = gx.runs()["id"].iloc[0]

    assert main(["runs", "export", run_id, str(tmp_path / "again.json")]) == EXIT_OK

    again = json.loads((tmp_path / "again.json").read_text())
    assert again["results"] == report["results"]
    assert again["run"]["origin"] == "lab.json, measured on a made-up processor"
    assert main(["compare", run_id, str(tmp_path / "again.json")]) == EXIT_OK
    assert "geometric mean" not in capsys.readouterr().out.splitlines()[-1]
