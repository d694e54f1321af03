"""`gpuexplore backup`, `restore` and `prune`: what they say, refuse and leave."""

import json

import pytest

from gpuexplore.cli import main
from gpuexplore.cli.output import EXIT_OK, EXIT_UNUSABLE
from gpuexplore.core.model import Experiment
from gpuexplore.hardware import lessons_directory
from gpuexplore.jobs.locks import supervisor_lock
from gpuexplore.store import Description, open_store
from gpuexplore.store.database import database_url
from tests.analysis.made import failed
from tests.cli.conftest import home

RESULT = failed()
EXPERIMENT = Experiment("matmul", (RESULT.case.shape,), ("fp32",), ("torch",))


@pytest.fixture
def said(capsys):
    def run(*words, code=EXIT_OK):
        assert main(words) == code
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return printed.out if code == EXIT_OK else printed.err

    return run


def recorded():
    with open_store() as store:
        return store.record(EXPERIMENT, "ada", results=[RESULT])


@pytest.fixture
def run_id(home):
    return recorded()


def runs():
    with open_store() as store:
        return {run.id for run in store.history()}


def test_a_home_comes_back_with_its_runs_and_lessons(said, tmp_path, run_id):
    copy, mine, other = tmp_path / "copy", lessons_directory() / "mine.md", lessons_directory() / "other.md"
    lessons_directory().mkdir()
    mine.write_text("# Mine")
    other.write_text("# Other")

    made = said("backup", str(copy))
    recorded()
    mine.write_text("# Mine, spoilt")
    other.unlink()

    assert "1 runs, 1 results" in made
    assert "2 lessons of your own" in made
    assert "is intact: " in said("restore", "--check", str(copy))
    assert json.loads(said("restore", "--check", "--json", str(copy)))["counts"]["runs"] == 1
    assert "the previous database is kept: " in said("restore", str(copy))
    assert runs() == {run_id}
    assert (mine.read_text(), other.read_text()) == ("# Mine", "# Other")
    assert [path.read_text() for path in lessons_directory().glob("mine.md.before-restore-*")] == ["# Mine, spoilt"]


def test_nothing_is_put_back_while_a_supervisor_works(said, tmp_path, run_id):
    said("backup", str(tmp_path / "copy"))
    with supervisor_lock(database_url()):
        refused = said("restore", str(tmp_path / "copy"), code=EXIT_UNUSABLE)

    assert "uses the database: stop the web server and the supervisor" in refused


@pytest.mark.parametrize(
    ("words", "does_it"), [(["backup"], "pg_dump --format=custom"), (["restore"], "pg_restore --clean --if-exists")]
)
def test_postgresql_is_copied_by_its_own_programs_without_its_password(said, monkeypatch, words, does_it):
    monkeypatch.setenv("GPUEXPLORE_DATABASE_URL", "postgresql+psycopg://lab:SECRET@head:5433/gpuexplore?host=x")
    told = said(*words, "lab.dump", code=EXIT_UNUSABLE)

    assert does_it in told
    assert "--dbname='postgresql://lab@head:5433/gpuexplore?host=x'" in told
    assert "SECRET" not in told


def test_pruning_says_what_goes_and_what_came_back(said, run_id):
    marked = recorded()
    with open_store() as store:
        store.describe(marked, "ada", Description(tags="paper"))

    assert "Would erase 1 runs with 1 results and 2 entries of the audit log; 1 more are kept" in said(
        "prune", "--older-than", "0d", "--dry-run"
    )
    assert runs() == {run_id, marked}
    assert json.loads(said("prune", "--older-than", "1d", "--json"))["runs"] == 0
    told = said("prune", "--older-than", "0m")
    assert "Erased 1 runs with 1 results" in told
    assert "of disk space freed: the database now takes" in told
    assert runs() == {marked}
    assert json.loads(said("prune", "--older-than", "0m", "--marked", "--json"))["runs"] == 1
    assert runs() == set()
