"""`lesson` lists, checks, runs and prints."""

import pytest

from gpuexplore.cli import EXIT_OK, EXIT_UNUSABLE, main
from gpuexplore.lessons.catalog import FOLDER, catalog, own_folder

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
    own_folder().mkdir(parents=True)
    (own_folder() / "broken.md").write_text("?")
    code, told = answered("lesson", "list", "--json")

    assert code == EXIT_OK
    assert [lesson["name"] for lesson in told["lessons"]] == list(catalog().lessons)
    assert "front matter" in told["unreadable"]["broken"]


def test_check_says_file_and_line(tmp_path, capsys):
    path = tmp_path / "mine.md"
    path.write_text(OWN + ASKED.replace("flops()", "flop()", 1))

    assert main(("lesson", "check", str(path))) == EXIT_UNUSABLE
    assert "mine.md, line 18: quantity 'flop': accepted are time" in capsys.readouterr().err


def test_check_accepts_a_lesson(answered):
    code, told = answered("lesson", "check", str(FOLDER / "how-long.md"), "--json")

    assert (code, told["checks"], told["name"]) == (EXIT_OK, 6, "how-long")


@pytest.mark.slow
def test_run_measures_a_lesson_of_ones_own(answered):
    own_folder().mkdir(parents=True)
    (own_folder() / "mine.md").write_text(OWN + ASKED)
    code, told = answered("lesson", "run", "mine", "--json")

    (step,) = told["steps"]
    (check,) = step["checks"]
    assert (code, check["answer"], check["outcome"]) == (EXIT_OK, "524,288 FLOP", "no guess")
    assert check["said"].startswith("It is 524,288 FLOP, in ")


def test_unknown_names_are_refused_with_what_is_accepted(capsys):
    assert main(("lesson", "run", "cooking")) == EXIT_UNUSABLE
    assert "lesson 'cooking': accepted are" in capsys.readouterr().err
    assert main(("lesson", "run", "how-long", "--step", "z")) == EXIT_UNUSABLE
    assert "step of how-long 'z': accepted are a, b" in capsys.readouterr().err


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


def test_check_says_of_a_file_that_is_not_there_only_that(tmp_path, capsys):
    assert main(("lesson", "check", str(tmp_path / "no.md"))) == EXIT_UNUSABLE
    said = capsys.readouterr().err
    assert "no.md: cannot be read: No such file or directory" in said
    assert "UTF-8" not in said
