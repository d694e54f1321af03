"""`gpuexplore selftest`: what it refuses, what it writes, and its exit code."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from gpuexplore.cli import main
from gpuexplore.cli.output import EXIT_FAILED, EXIT_OK, EXIT_UNUSABLE
from gpuexplore.core.model import Bandwidth
from gpuexplore.features.selftest import selftest_command
from gpuexplore.features.selftest.suite.contract import (
    CheckFigure,
    CheckFinding,
    CheckOutcome,
    CheckVerdict,
    SelfCheck,
    SelftestReport,
    judged,
    report_html,
)
from tests.cli.conftest import answered, home
from tests.measure.fakes import CPU, GPU


@pytest.fixture
def checks(monkeypatch):
    """Return how to replace the checks."""

    def replaced(*findings):
        made = tuple(SelfCheck(f"c{i}", f"Check {i}", lambda _, found=found: found) for i, found in enumerate(findings))
        monkeypatch.setattr(selftest_command, "CHECKS", made)

    return replaced


@pytest.fixture(autouse=True)
def devices(monkeypatch, checks):
    """Let a CPU be all there is, with one check that passes."""
    found = [CPU]
    monkeypatch.setattr(selftest_command, "discover", lambda: tuple(found))
    monkeypatch.setattr(selftest_command, "report_lock_holder", lambda device: None)
    checks(judged([], [CheckFigure("a figure", 2e-6, "s")]))
    return found


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--device", "cuda:7"), "device 'cuda:7': expected cpu"),
        (("--device", "simulated:0"), "device 'simulated:0': expected cpu"),
        (("--html", "report.pdf"), "file type '.pdf': expected .html"),
        (("--html", "nowhere/report.html"), "folder 'nowhere': expected an existing one"),
        (("--out", "full"), "--out 'full': expected empty or new folders"),
        (("--out", "a/b"), "--out 'a/b': expected folders that can be created"),
        (("--by", " "), "--by ' ': expected the name of the person"),
    ],
)
def test_what_cannot_be_used_is_named_and_nothing_is_tested(tmp_path, monkeypatch, capsys, devices, words, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "report.json").touch()
    devices.append(SimpleNamespace(id="simulated:0", kind="simulated", is_simulated=True))

    assert main(["selftest", *words]) == EXIT_UNUSABLE
    assert sentence in capsys.readouterr().err
    assert not list(tmp_path.glob("selftest-*/*"))


def test_report_is_json_text_and_a_page(tmp_path, monkeypatch, answered):
    monkeypatch.chdir(tmp_path)
    code, report = answered("selftest", "--json")
    (folder,) = tmp_path.glob("selftest-*")

    assert code == EXIT_OK
    assert report["schema_version"] == 1
    assert report["outcomes"][0]["figures"] == [{"name": "a figure", "value": 2e-6, "unit": "s", "note": ""}]
    assert {file.name for file in folder.iterdir()} == {"report.json", "report.txt", "report.html"}
    assert "2.00 µs" in (folder / "report.txt").read_text(encoding="utf-8")
    assert report["no_gpu"].startswith("No GPU was found")


def test_one_failure_is_exit_code_1_with_its_sentence(tmp_path, capsys, checks):
    checks(CheckFinding(CheckVerdict.FAIL, ("it reads double",)), judged([], []))

    assert main(["selftest", "--out", str(tmp_path / "new"), "--html", str(tmp_path / "sent.html")]) == EXIT_FAILED
    assert "it reads double" in capsys.readouterr().out
    assert "it reads double" in (tmp_path / "sent.html").read_text(encoding="utf-8")


def test_interrupted_self_test_is_a_failure_and_keeps_what_was_found(tmp_path, monkeypatch, answered, capsys):
    def interrupt(_):
        raise KeyboardInterrupt

    first = SelfCheck("first", "First", lambda _: judged([], []))
    monkeypatch.setattr(selftest_command, "CHECKS", (first, SelfCheck("second", "Second", interrupt), first))
    code, report = answered("selftest", "--json", "--out", str(tmp_path / "new"))

    assert code == EXIT_FAILED
    assert [outcome["verdict"] for outcome in report["outcomes"]] == ["pass", "skipped", "skipped"]
    assert "interrupted" in (tmp_path / "new" / "report.txt").read_text(encoding="utf-8").splitlines()[0]


def test_report_has_the_device_as_it_was_measured(tmp_path, monkeypatch, answered):
    def warm(bench):
        bench.device = replace(bench.device, cache_bytes=12345, bandwidth=Bandwidth(2e10, "measured_ceiling", "a loop"))
        return judged([], [])

    monkeypatch.setattr(selftest_command, "CHECKS", (SelfCheck("warm", "Warm", warm),))
    _, report = answered("selftest", "--json", "--out", str(tmp_path / "new"))

    assert report["device"]["cache_bytes"] == 12345
    assert report["device"]["bandwidth"]["source"] == "a loop"


def test_report_names_neither_the_host_nor_the_user(tmp_path, monkeypatch, checks):
    monkeypatch.setenv("HOME", "/home/carla")
    monkeypatch.setattr(selftest_command, "getuser", lambda: "carla")
    monkeypatch.setattr(selftest_command, "node", lambda: "carlas-box.lab.example")
    paths = "no file /home/carla/.cache/x, /scratch/carla/y, /tmp/torchinductor_carla/z"
    words = f"{paths} on carlas-box.lab.example, carlas-box"
    checks(
        CheckFinding(
            CheckVerdict.FAIL,
            (words,),
            (CheckFigure("a", words), CheckFigure("b", 1.0, note=words), CheckFigure("c", None)),
        )
    )
    main(["selftest", "--out", str(tmp_path / "new")])

    for file in (tmp_path / "new").iterdir():
        text = file.read_text(encoding="utf-8")
        assert "carla" not in text, file.name
        assert "no file ~/.cache/x" in text


MPS = replace(GPU, id="mps:0", kind="mps")


@pytest.mark.parametrize(("found", "tested"), [([GPU], "cuda:0"), ([MPS], "mps:0"), ([MPS, GPU], "cuda:0")])
def test_first_gpu_is_tested_and_one_of_another_maker_where_there_is_none_of_nvidia(
    tmp_path, answered, devices, found, tested
):
    devices += found
    _, report = answered("selftest", "--json", "--out", str(tmp_path / "new"))

    assert report["device"]["id"] == tested
    assert report["no_gpu"] == ""


def test_page_shows_what_devices_and_errors_say_as_text():
    outcome = CheckOutcome("c", "A check", CheckVerdict.FAIL, ("<script>alert(1)</script>",), (), 1.0)
    report = SelftestReport("2026-01-02T03:04:05+00:00", "1", None, "gpuexplore selftest", GPU, False, 1.0, (outcome,))

    assert "<script>" not in report_html(report)
    assert "&lt;script&gt;" in report_html(report)
