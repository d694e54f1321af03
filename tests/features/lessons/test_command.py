"""`lesson` lists, checks, runs and prints."""

from dataclasses import replace

import pytest

import gpuexplore
from gpuexplore.cli import main
from gpuexplore.cli.output import EXIT_OK, EXIT_UNUSABLE
from gpuexplore.core.model import Bandwidth
from gpuexplore.features.lessons.lesson import FOLDER, catalog
from gpuexplore.hardware import lessons_directory
from tests.cli.conftest import answered, home

OWN = '+++\ntitle = "Mine"\nquestion = "What?"\nminutes = 1\n+++\n## Step\nText.\n'
ASKED = """```guess
id = "flop"
ask = "FLOP of 64"
unit = "FLOP"
```
```run
operation = "matmul"
size = "64"
impl = "numpy"
```
```check
guess = "flop"
exact = "flops()"
```
```say
text = "It is {{ flops() }}, in {{ time() }}."
```
"""


def test_list_names_every_lesson_and_what_is_none(answered):
    lessons_directory().mkdir(parents=True)
    (lessons_directory() / "broken.md").write_text("?")
    code, told = answered("lesson", "list", "--json")

    assert code == EXIT_OK
    assert [lesson["name"] for lesson in told["lessons"]] == list(catalog().lessons)
    assert "front matter" in told["unreadable"]["broken"]


def test_check_says_file_and_line_and_of_a_file_that_is_not_there_only_that(tmp_path, capsys):
    path = tmp_path / "mine.md"
    path.write_text(OWN + ASKED.replace("flops()", "flop()", 1))

    assert main(("lesson", "check", str(path))) == EXIT_UNUSABLE
    assert "mine.md, line 18: quantity 'flop': expected time" in capsys.readouterr().err
    assert main(("lesson", "check", str(tmp_path / "no.md"))) == EXIT_UNUSABLE
    said = capsys.readouterr().err
    assert "no.md: cannot be read: No such file or directory" in said
    assert "UTF-8" not in said


def test_check_accepts_a_lesson(answered):
    code, told = answered("lesson", "check", str(FOLDER / "how-long.md"), "--json")

    assert (code, told["checks"], told["name"]) == (EXIT_OK, 6, "how-long")


@pytest.mark.slow
def test_run_measures_a_lesson_of_ones_own(answered):
    lessons_directory().mkdir(parents=True)
    (lessons_directory() / "mine.md").write_text(OWN + ASKED)
    code, told = answered("lesson", "run", "mine", "--json")

    (step,) = told["steps"]
    (check,) = step["checks"]
    assert (code, check["answer"], check["outcome"]) == (EXIT_OK, "524,288 FLOP", "no guess")
    assert check["said"].startswith("It is 524,288 FLOP, in ")


def test_unknown_names_are_refused_with_what_is_accepted(capsys):
    assert main(("lesson", "run", "cooking")) == EXIT_UNUSABLE
    assert "lesson 'cooking': expected" in capsys.readouterr().err
    assert main(("lesson", "run", "how-long", "--step", "z")) == EXIT_UNUSABLE
    assert "step of how-long 'z': expected a, b" in capsys.readouterr().err


def test_print_writes_one_file_that_needs_no_other(tmp_path, capsys):
    path = tmp_path / "sheet.html"

    assert main(("lesson", "print", "how-long", "--out", str(path))) == EXIT_OK
    written = path.read_text(encoding="utf-8")
    assert written.count("<section>") == len(catalog().lesson("how-long").steps)
    assert "I guess" in written
    assert "the median" in written
    assert "Which figure should be reported?</b>" in written
    assert 'name="viewport"' in written
    assert "src=" not in written
    assert "href=" not in written
    assert main(("lesson", "print", "how-long", "--out", str(tmp_path / "sheet.pdf"))) == EXIT_UNUSABLE


def test_an_answered_sheet_names_its_machine_and_the_peaks_that_were_measured_for_it(tmp_path, monkeypatch):
    class Engine:
        """Measures nothing but the ceilings."""

        def __init__(self, devices):
            self.devices = devices

        def warm(self, found):
            return replace(found, name="A CPU of its own", bandwidth=Bandwidth(41e9, "measured_ceiling", "a loop"))

        def close(self):
            return None

    path = tmp_path / "sheet.html"
    lessons_directory().mkdir(parents=True)
    block = '```predict\noperation = "vector_add"\nsize = "1000"\ngpu = "cpu"\n```\n'
    asked = "The memory gives {{ peak_bandwidth() }} at most.\n" + block
    (lessons_directory() / "mine.md").write_text(OWN + asked)
    monkeypatch.setattr("gpuexplore.features.lessons.lesson_command.LocalEngine", Engine)

    assert main(("lesson", "print", "mine", "--out", str(path), "--answered")) == EXIT_OK
    written = path.read_text(encoding="utf-8")
    assert "With the answers of A CPU of its own" in written
    assert f"gpuexplore {gpuexplore.__version__}" in written
    assert "The memory gives 41.0 GB/s at most." in written
