"""docs/deployment.md names every setting, and the commands it gives do what it says."""

import os
import re
import subprocess
import sys
from dataclasses import fields
from datetime import UTC, datetime, timedelta

import pytest

from gpuexplore.core.errors import NotFound
from gpuexplore.core.model import Experiment, Shape
from gpuexplore.core.typed_text import LONGEST_LIST, LONGEST_TEXT
from gpuexplore.jobs.engines.worker_process import MARK
from gpuexplore.store import open_store
from gpuexplore.store.submission import _QueueLimits
from gpuexplore.ui.link import MOST_RUNS
from tests.analysis.made import ok
from tests.docs.markdown import ROOT

TEXT = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
EXPERIMENT = Experiment("matmul", (Shape.of(m=64, k=64, n=64),), ("fp32",), ("numpy",), ("cpu",))


def command(part):
    """Return the documented command with `part` in it."""
    (found,) = [line for line in TEXT.splitlines() if part in line]
    return found


def run_in(home, script):
    """Run a documented command with `home` as the directory of data, and the directory it works in."""
    script = script.replace("gpuexplore ", f"{sys.executable} -m gpuexplore ", 1)
    environment = os.environ | {"GPUEXPLORE_HOME": str(home)}
    return subprocess.run(["sh", "-c", script], cwd=home, env=environment, capture_output=True, text=True, check=True)


def stored(home, *, days_ago=0):
    """Store a run that ended some days ago; return its id."""
    with open_store(database(home), clock=lambda: datetime.now(UTC) - timedelta(days=days_ago)) as store:
        return store.record(EXPERIMENT, "me", results=[ok(size=64, implementation="numpy")])


def database(home, name="gpuexplore.sqlite3"):
    return f"sqlite:///{home / name}"


def test_every_setting_of_ours_has_a_row():
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "gpuexplore").rglob("*.py"))
    read = set(re.findall(r"\bGPUEXPLORE_[A-Z_]+[A-Z]\b", sources)) - {MARK}  # which nobody sets

    assert read
    assert {name for name in read if f"| `{name}` |" not in TEXT} == set()


@pytest.mark.parametrize("field", fields(_QueueLimits), ids=lambda field: field.name)
def test_every_limit_of_the_queue_has_a_row_with_its_default(field):
    (row,) = [line for line in TEXT.splitlines() if f"| `GPUEXPLORE_LIMIT_{field.name.upper()}` |" in line]

    assert row.endswith(f"| {field.default} |")


def test_limits_of_texts_are_those_of_the_code():
    assert f"| characters of a typed text, or of one value of a list | {LONGEST_TEXT} |" in TEXT
    assert f"| characters of a list | {LONGEST_LIST:,} |" in TEXT
    assert f"| runs that a link names | {MOST_RUNS} |" in TEXT


def test_backup_of_sqlite_is_a_database_with_the_runs(tmp_path):
    run_id = stored(tmp_path)
    run_in(tmp_path, command("gpuexplore backup "))

    assert "1 runs, 1 results" in run_in(tmp_path, command("gpuexplore restore --check ")).stdout
    with open_store(database(tmp_path, "gpuexplore-backup.sqlite3")) as copy:
        assert len(copy.load(run_id).results) == 1


def test_retention_deletes_old_runs_with_their_results_and_no_others(tmp_path):
    old, recent = stored(tmp_path, days_ago=91), stored(tmp_path, days_ago=89)
    run_in(tmp_path, command("gpuexplore prune --older-than 90d"))

    with open_store(database(tmp_path)) as store:
        assert len(store.load(recent).results) == 1
        with pytest.raises(NotFound):
            store.load(old)
        assert store.results_after(old, 0) == ()
