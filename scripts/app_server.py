"""Serves the app on a free port with a home of its own: for browser tests and screenshots."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from urllib.error import HTTPError

ROOT = Path(__file__).resolve().parent.parent
START_S = 300  # a busy machine takes minutes
LOOK_S = 0.2
CHROMIUM_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def served(home: Path, *, warm: bool = True, settings: Mapping[str, str] = MappingProxyType({})) -> Iterator[str]:
    """Serve the app and yield its address; both it and its supervisor end with the block.

    Args:
        home: where the server keeps its data.
        warm: wait until the measuring process is ready.
        settings: variables of the server's environment.
    """
    environment = os.environ | {"GPUEXPLORE_HOME": str(home), **settings}
    environment.pop("GPUEXPLORE_DATABASE_URL", None)
    with streamlit_served(home, "app.py", environment) as (process, address):
        if warm:
            _wait(process, lambda: _is_warm(address))
        yield address


@contextmanager
def streamlit_served(
    home: Path, script: str, environment: Mapping[str, str] | None = None, most_files: int | None = None
) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Serve a Streamlit script of the checkout and yield its process and address; its log lies in `home`.

    Args:
        home: where the server keeps its data.
        script: path of the script.
        environment: of the server; None for that of this process.
        most_files: that the server may have open, sockets included; None as many as this process.
    """
    port = free_port()
    command = [sys.executable, "-m", "streamlit", "run", script, "--server.port", str(port)]
    if most_files is not None:
        command = ["sh", "-c", f'ulimit -n {most_files} && exec "$@"', "sh", *command]
    with (home / "server.log").open("ab") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
        try:
            wait_until_served(process, port)
            yield process, f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(30)


def free_port() -> int:
    """Return a port of the loopback that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until_served(process: subprocess.Popen[bytes], port: int) -> None:
    """Return once the server answers.

    Raises:
        RuntimeError: it ended, or took too long.
    """
    _wait(process, lambda: _answers(port))


def _wait(process: subprocess.Popen[bytes], ready: Callable[[], bool]) -> None:
    latest = time.monotonic() + START_S
    while not ready():
        if process.poll() is not None or time.monotonic() > latest:
            raise RuntimeError("the server did not start; see server.log in its home")
        time.sleep(LOOK_S)


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=1):
            return True
    except OSError:
        return False


def database_of(home: Path) -> str:
    """Return the URL of the database of a server with this home."""
    return f"sqlite:///{home / 'gpuexplore.sqlite3'}"


def _is_warm(address: str) -> bool:
    try:
        with suppress(HTTPError), urllib.request.urlopen(f"{address}/api/ready", timeout=5):  # starts the supervisor
            pass
        with urllib.request.urlopen(f"{address}/api/status", timeout=5) as answer:
            return any(supervisor["state"] == "ready" for supervisor in json.load(answer)["supervisors"])
    except OSError:  # the database is still being made
        return False
