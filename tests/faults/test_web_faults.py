"""Whatever happens to the web server, what is being measured goes on or is taken up again."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import suppress

import pytest

import gpuexplore
from gpuexplore.core.model import RunState
from tests.faults.conftest import ends, experiment, holder, is_measuring, next_run_starts, wait_until

START_S = 40.0


@pytest.fixture
def serve(home, repository):
    """Return how to start a web server; what is left of them ends with the test."""
    started = []

    def start(tree=repository):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)]
        process = subprocess.Popen(
            command,
            cwd=tree,
            env=os.environ | {"PYTHONPATH": str(tree)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        process.url = f"http://127.0.0.1:{port}"
        started.append(process)
        wait_until(lambda: asked(process, "/_stcore/health") == 200, START_S, "the web server")
        asked(process, "/api/ready")  # which starts the supervisor
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.terminate()
            process.wait(20)
    if (left := holder()) is not None:
        left.process().kill()


def asked(server, path):
    """Return the status with which the server answers."""
    try:
        with urllib.request.urlopen(server.url + path, timeout=5) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None


def test_killed_web_server_leaves_the_measurement_alone(store, serve):
    server = serve()
    wait_until(lambda: holder() is not None)
    supervisor = holder()
    run_id = store.submit(experiment(20, budget_s=0.1), "ada")
    wait_until(lambda: is_measuring(store, run_id, done=1))

    server.send_signal(signal.SIGKILL)

    assert ends(store, run_id).state is RunState.DONE
    serve()
    assert holder() == supervisor
    next_run_starts(store)


def test_web_server_that_is_told_to_stop_gives_the_run_back_and_the_next_one_ends_it(store, serve):
    server = serve()
    wait_until(lambda: holder() is not None)
    run_id = store.submit(experiment(40, budget_s=0.1), "ada")
    wait_until(lambda: is_measuring(store, run_id, done=1))

    server.terminate()
    server.wait(20)

    assert holder() is None
    assert store.load_summary(run_id).state is RunState.QUEUED
    serve()
    run = ends(store, run_id)
    assert (run.state, len(run.results)) == (RunState.DONE, 40)


def test_second_web_server_shares_the_supervisor_and_keeps_it_alive(store, serve):
    first, second = serve(), serve()
    wait_until(lambda: holder() is not None)

    first.terminate()
    first.wait(20)

    wait_until(lambda: holder() is not None, 20, "the second server's supervisor")
    assert second.poll() is None
    next_run_starts(store, within_s=20)


def test_upgraded_web_server_replaces_the_supervisor(store, serve, repository, tmp_path):
    serve()
    wait_until(lambda: holder() is not None)
    assert holder().version == gpuexplore.__version__

    serve(newer(repository, tmp_path / "newer"))

    wait_until(lambda: getattr(holder(), "version", None) == "99.0.0", START_S, "the new supervisor")
    next_run_starts(store, within_s=20)


def newer(repository, tree):
    """Copy the app as a version to come."""
    tree.mkdir()
    for name in ("gpuexplore", "pages", ".streamlit"):
        shutil.copytree(repository / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(repository / "app.py", tree)
    package = tree / "gpuexplore" / "__init__.py"
    package.write_text(package.read_text().replace(f'"{gpuexplore.__version__}"', '"99.0.0"'))
    return tree


def test_readiness_is_told_to_programs(store, serve):
    server = serve()
    wait_until(lambda: asked(server, "/api/ready") == 200, what="readiness")
    with urllib.request.urlopen(f"{server.url}/api/status", timeout=5) as answer:
        status = json.load(answer)
    assert [supervisor["alive"] for supervisor in status["supervisors"]] == [True]

    supervisor = holder().process()
    supervisor.send_signal(signal.SIGSTOP)
    wait_until(lambda: asked(server, "/api/ready") == 503, 10, "the refusal")
    with suppress(ProcessLookupError):
        supervisor.send_signal(signal.SIGCONT)
    wait_until(lambda: asked(server, "/api/ready") == 200, what="readiness again")
