"""Every row of the notebooks is done here: its lesson, its page and its command are there, and the command works."""

import re
import shlex

import pytest

from gpuexplore.cli import activity_run, main, run_command
from gpuexplore.cli.output import EXIT_OK
from gpuexplore.core.notebooks import TITLES, titles
from gpuexplore.core.serialization import encode
from gpuexplore.features.lessons.lesson import catalog
from gpuexplore.features.mistakes import mistake_command
from gpuexplore.hardware import discover
from gpuexplore.jobs.engines.local import LocalEngine
from gpuexplore.ui.navigation import pages
from tests.features.mistakes.catalog.made import observation
from tests.made_ceiling import save_made_ceiling

ROWS = [
    f"{letter}{number}" for letter, last in zip("ABCDE", (5, 7, 4, 4, 7), strict=True) for number in range(1, last + 1)
]
IN_A_WORKER = ("run", "train", "transfer")
QUICKLY = {"run": ("--budget", "0.02")}


@pytest.fixture(scope="module")
def table(repository):
    text = (repository / "docs" / "notebooks.md").read_text(encoding="utf-8")
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")
    ]
    return {row[0]: dict(zip(("about", "lesson", "page", "command"), row[1:], strict=True)) for row in cells[2:]}


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUEXPLORE_HOME", str(tmp_path))
    monkeypatch.delenv("GPUEXPLORE_DATABASE_URL", raising=False)
    save_made_ceiling()


def command_of(table, row):
    program, *words = shlex.split(table[row]["command"].strip("`"))
    assert program == "gpuexplore"
    return words


def test_every_row_of_the_notebooks_is_there(table):
    assert list(table) == ROWS
    assert {row: cells["about"].replace("`", "") for row, cells in table.items()} == TITLES


def test_a_row_of_other_notebooks_stays_as_it_is():
    assert titles(["A3", "X1"]) == "a convolution by cuDNN (A3); X1"


@pytest.mark.parametrize("row", ROWS)
def test_its_lesson_does_that_row_and_its_page_is_in_the_navigation(table, row):
    assert row in catalog().lesson(table[row]["lesson"].strip("`")).rows
    assert table[row]["page"] in {page.title for page in pages().values()}


@pytest.mark.parametrize("row", ROWS)
def test_its_command_works_where_no_device_is_needed(table, row, capsys, repository, monkeypatch):
    monkeypatch.chdir(repository)
    monkeypatch.setattr(mistake_command, "perform", made_mistake)  # the tests of mistakes make each of them
    words = command_of(table, row)
    if words[0] in IN_A_WORKER:
        words = [words[0], "--help"]  # the slow test does it
        with pytest.raises(SystemExit, match="0"):
            main(words)
    else:
        assert main(words) == EXIT_OK
    assert capsys.readouterr().out


def made_mistake(activity):
    return (encode(observation(mistake=dict(activity.arguments)["name"])),)


class SharedEngine:
    """The engine of all commands: its worker stays warm from one to the next."""

    def __init__(self):
        self.engine, self.warmed = LocalEngine(discover()), set()

    def __call__(self, devices, **_):
        return self

    def warm(self, device):
        if device.id not in self.warmed:
            self.warmed.add(device.id)
            self.engine.warm(device)

    def __getattr__(self, name):
        return getattr(self.engine, name)

    def close(self):
        """Stay open for the next command."""


@pytest.fixture
def one_worker(monkeypatch):
    shared = SharedEngine()
    for module in (activity_run, run_command):
        monkeypatch.setattr(module, "LocalEngine", shared)
    yield
    shared.engine.close()


@pytest.mark.slow
def test_its_command_works_on_this_machine(table, one_worker, capsys):
    for row in ROWS:
        words = command_of(table, row)
        if words[0] in IN_A_WORKER:
            assert main([*words, *QUICKLY.get(words[0], ())]) == EXIT_OK, f"{row}: {capsys.readouterr().err}"
            assert re.search(r"\d", capsys.readouterr().out), row
