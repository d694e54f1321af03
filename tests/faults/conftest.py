"""What the tests of faults share: a home whose ceilings are measured already, a watched supervisor, and patience.

The supervisor and its worker are the real ones, and so is what they measure: NumPy's product of small matrices.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import threading
import time

import pytest

from gpuexplore.core.model import Experiment, Options, RunState, Shape
from gpuexplore.jobs.client import watch
from gpuexplore.jobs.locks import supervisor_lock
from gpuexplore.store import open_store
from gpuexplore.store.database import database_url

PATIENCE_S = 150.0
ENDED = (RunState.DONE, RunState.CANCELLED, RunState.FAILED)


def pytest_collection_modifyitems(items):
    for item in items:
        if "tests/faults/" in item.nodeid:
            item.add_marker("faults")


def experiment(cases=1, budget_s=0.01):
    shapes = tuple(Shape.of(m=size, k=size, n=size) for size in range(8, 8 + cases))
    return Experiment("matmul", shapes, ("fp32",), ("numpy",), options=Options(budget_s=budget_s))


def long_experiment():
    """Return an experiment of one group that takes half a minute."""
    return Experiment(
        "matmul", (Shape.of(m=3000, k=3000, n=3000),), ("fp32",), ("numpy",), options=Options(budget_s=30)
    )


def wait_until(condition, within_s=PATIENCE_S, what="it"):
    """Return the seconds until `condition` was true; fail when that takes longer than `within_s`."""
    start_s = time.monotonic()
    while not condition():
        assert time.monotonic() - start_s < within_s, f"{what} did not come to that within {within_s} s"
        time.sleep(0.02)
    return time.monotonic() - start_s


@pytest.fixture(scope="session")
def warm_cache(tmp_path_factory):
    """Return a cache directory with this machine's ceilings, so that no test waits for them."""
    home = tmp_path_factory.mktemp("warm")
    environment = os.environ | {"GPUEXPLORE_HOME": str(home), "GPUEXPLORE_LOCKS": str(home / "locks")}
    with open_store(f"sqlite:///{home}/gpuexplore.sqlite3") as store:
        store.submit(experiment(), "ada")
    subprocess.run([sys.executable, "-m", "gpuexplore.jobs.supervisor", "--once"], env=environment, check=True)
    return home / "cache"


@pytest.fixture
def home(tmp_path, monkeypatch, warm_cache):
    monkeypatch.setenv("GPUEXPLORE_HOME", str(tmp_path))
    monkeypatch.setenv("GPUEXPLORE_LOCKS", str(tmp_path / "locks"))
    monkeypatch.delenv("GPUEXPLORE_DATABASE_URL", raising=False)
    shutil.copytree(warm_cache, tmp_path / "cache")
    return tmp_path


@pytest.fixture
def store(home):
    with open_store() as opened:
        yield opened


@pytest.fixture
def watched(home):
    """Return how to keep a supervisor alive as the web server does, with no page open."""
    stops = []

    def started(url=None):
        stop = threading.Event()
        thread = threading.Thread(target=watch, args=(stop, url))
        thread.start()
        stops.append((stop, thread))
        wait_until(lambda: holder(url) is not None, what="the supervisor")
        return holder(url)

    yield started
    for stop, _ in stops:
        stop.set()
    for _, thread in stops:
        thread.join(30)


@pytest.fixture
def supervisor(watched):
    """Return the process of a watched supervisor that is ready."""
    return watched().process()


def holder(url=None):
    """Return who holds the lock of the database's supervisor."""
    return supervisor_lock(database_url(url)).holder()


def is_replaced(process, url=None):
    now = holder(url)
    return now is not None and now.pid != process.pid


def is_ready(store):
    with contextlib.suppress(Exception):
        return any(found.alive and found.state == "ready" for found in store.supervisors())
    return False


def ends(store, run_id, within_s=PATIENCE_S):
    """Wait for the end of a run and return it."""
    wait_until(lambda: store.load_summary(run_id).state in ENDED, within_s, f"run {run_id}")
    return store.load(run_id)


def is_measuring(store, run_id, done=0):
    summary = store.load_summary(run_id)
    return summary.state is RunState.RUNNING and summary.progress.done >= done and summary.progress.current is not None


def next_run_starts(store, within_s=2.0):
    """Queue a run and wait until it is measured; fail when it is not within `within_s`."""
    run_id = store.submit(experiment(), "the next one")
    wait_until(lambda: store.load_summary(run_id).state is not RunState.QUEUED, within_s, "the next run")
    assert ends(store, run_id).state is RunState.DONE
