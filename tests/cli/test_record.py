"""What `record` refuses before it measures, and what `--check` says of a file."""

import pytest

from gpuexplore.cli import main, record_command
from gpuexplore.cli.output import EXIT_FAILED, EXIT_OK, EXIT_UNUSABLE
from gpuexplore.core.model import Result, Status
from tests.recorded import made

WORDS = ("record", "vector_add", "--size", "8", "--impl", "numpy", "--dtype", "fp32", "--device", "cpu")


@pytest.fixture(autouse=True)
def nothing_is_measured(monkeypatch):
    def fail(*_, **__):
        raise AssertionError("nothing may be measured")

    monkeypatch.setattr(record_command, "sweep", fail)
    monkeypatch.setattr(record_command, "git_commit", lambda: None)


NO_NAME = "--by '': expected the name of the person who measures"
NO_COMMIT = "expected 7 to 40 hexadecimal digits"


@pytest.mark.parametrize(
    ("by", "commit", "said"),
    [
        ((), ("--commit", "0123456"), NO_NAME),
        (("--by", ""), ("--commit", "0123456"), NO_NAME),
        (("--by", "  "), ("--commit", "0123456"), NO_NAME),
        (("--by", "a tester"), (), "--commit '': expected the commit of this code"),
        (("--by", "a tester"), ("--commit", "nonsense"), f"commit 'nonsense': {NO_COMMIT}"),
        (("--by", "a tester"), ("--commit", "main"), f"commit 'main': {NO_COMMIT}"),
        (("--by", "a tester"), ("--commit", "12345"), f"commit '12345': {NO_COMMIT}"),
    ],
)
def test_name_and_commit_that_would_be_refused_afterwards_are_refused_before(tmp_path, capsys, by, commit, said):
    path = tmp_path / "out.jsonl"

    assert main([*WORDS, *by, *commit, "--out", str(path)]) == EXIT_UNUSABLE
    assert said in capsys.readouterr().err
    assert not path.exists()


def test_a_commit_that_git_contradicts_is_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(record_command, "git_commit", lambda: "0123456789ab")
    words = [*WORDS, "--by", "a tester", "--out", str(tmp_path / "out.jsonl")]

    assert main([*words, "--commit", "fedcba9"]) == EXIT_UNUSABLE
    assert "--commit 'fedcba9': expected 0123456789ab, the commit that git reports" in capsys.readouterr().err
    with pytest.raises(AssertionError, match="nothing may be measured"):
        main([*words, "--commit", "0123456"])


def test_what_was_recorded_before_is_never_overwritten(tmp_path, capsys):
    path = tmp_path / "out.jsonl"
    path.write_text("an hour of measuring")

    assert main([*WORDS, "--by", "a tester", "--commit", "0123456", "--out", str(path)]) == EXIT_UNUSABLE
    assert "--out 'out.jsonl': expected a new file" in capsys.readouterr().err
    assert path.read_text() == "an hour of measuring"


def test_a_file_that_cannot_be_written_is_named_before_measuring(tmp_path, capsys):
    path = tmp_path / "folder.jsonl"
    path.mkdir()

    assert main([*WORDS, "--by", "a tester", "--commit", "0123456", "--out", str(path)]) == EXIT_UNUSABLE
    assert "expected a writable file (Is a directory)" in capsys.readouterr().err


def test_a_device_that_hides_its_driver_is_not_recorded(tmp_path, capsys, monkeypatch):
    gpu = made.gpu()
    monkeypatch.setattr(record_command, "discover", lambda: (made.replace(gpu, driver=None),))
    words = [*WORDS[:4], "--impl", "numba-cuda", "--dtype", "fp32", "--by", "a tester", "--commit", "0123456"]

    assert main([*words, "--out", str(tmp_path / "out.jsonl")]) == EXIT_UNUSABLE
    assert "unknown on this machine: driver of cuda:0" in capsys.readouterr().err


def test_a_file_is_written_or_checked_not_both(tmp_path):
    with pytest.raises(SystemExit):
        main([*WORDS, "--out", str(tmp_path / "a.jsonl"), "--check", str(tmp_path / "b.jsonl")])


def test_what_was_not_measured_after_a_broken_context_is_left_out_and_said(tmp_path, capsys, monkeypatch):
    def broken_by_the_first(experiment, *_, report, **__):
        first, *others = experiment.cases()
        report(Result(first, Status.ERROR, reason="illegal memory access"))
        for case in others:
            report(Result(case, Status.CANCELLED, reason="not measured: numpy broke the CUDA context of this process"))

    monkeypatch.setattr(record_command, "sweep", broken_by_the_first)
    path = tmp_path / "out.jsonl"

    words = [*WORDS, "--size", "8,16,32", "--by", "me", "--commit", "0123456", "--out", str(path)]
    assert main(words) == EXIT_FAILED
    assert "2 cases are left out, the first of them: not measured: numpy broke" in capsys.readouterr().err
    assert main(["record", "--check", str(path)]) == EXIT_FAILED
    assert "2 cases of its header have no result" in capsys.readouterr().err


def test_check_sums_a_file_up(tmp_path, capsys):
    assert main(["record", "--check", str(made.write(tmp_path / "made.jsonl"))]) == EXIT_OK

    assert capsys.readouterr().out.splitlines() == [
        "made: recorded 2026-01-02T03:04:05+00:00 by a tester, gpuexplore 1 record, commit 0123456789ab",
        "cuda:0: a made-up GPU, driver 999.1",
        "torch 2.0",
        "matmul: 8 of 8 cases",
        "status: 8 ok",
        "flags: none",
    ]


def test_check_refuses_a_file_that_lacks_cases_of_its_header(tmp_path, capsys):
    path = made.write(tmp_path / "cut.jsonl", made.lines()[:-2])

    assert main(["record", "--check", str(path)]) == EXIT_FAILED
    told = capsys.readouterr()
    assert "6 of 8 cases" in told.out
    assert "cut.jsonl: 2 cases of its header have no result, " in told.err


def test_check_refuses_a_file_without_provenance_and_names_one_that_is_not_there(tmp_path, capsys):
    path = made.write(tmp_path / "made.jsonl", made.lines()[1:])

    assert main(["record", "--check", str(path)]) == EXIT_FAILED
    told = capsys.readouterr()
    assert told.err.startswith("gpuexplore: made.jsonl, line 1: schema_version")
    assert told.out == ""
    assert main(["record", "--check", str(tmp_path / "nothere.jsonl")]) == EXIT_FAILED
    assert "nothere.jsonl: " in capsys.readouterr().err
