"""Starts `gpuexplore app` beside a notebook and waits until it answers."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from gpuexplore.devices.directories import data_directory
from gpuexplore.errors import InvalidInput, NotStarted
from gpuexplore.notebook.platform import Platform

START_S = 120  # a cold machine loads for half a minute
LOOK_S = 0.2
LARGEST_PORT = 65535
LOG = "notebook-app.log"  # of the latest one
LOOPBACK = "127.0.0.1"
FRAMED_BY: Mapping[Platform, str] = {  # pages that show the app; Colab's outputs are frames of a domain of their own
    "colab": "https://colab.research.google.com,https://*.googleusercontent.com,https://*.prod.colab.dev",
    "jupyter": "http://localhost:*,http://127.0.0.1:*",
}


def checked_port(port: int | None) -> int:
    """Return the port, or one that is free.

    Raises:
        InvalidInput: it is none, or something listens on it.
    """
    if port is not None and (not isinstance(port, int) or isinstance(port, bool) or not 0 < port <= LARGEST_PORT):
        raise InvalidInput.of("port", port, f"whole numbers from 1 to {LARGEST_PORT}, or None for one that is free")
    with socket.socket() as probe:
        try:
            probe.bind((LOOPBACK, port or 0))
        except OSError as error:
            accepted = f"ports that this user may listen on and nothing else does; this one: {error.strerror}"
            raise InvalidInput.of("port", port, accepted) from error
        return int(probe.getsockname()[1])


def served(port: int, here: Platform, address: str) -> subprocess.Popen[bytes]:
    """Return the process that serves the app, once it answers.

    Args:
        port: what it listens on.
        here: where the notebook runs.
        address: under which browsers reach the port.

    Raises:
        NotStarted: it ended, or took too long; says why.
    """
    command = [sys.executable, "-m", "gpuexplore", "app", "--port", str(port)]
    if here == "colab":
        command += ["--behind-proxy", f"{urlsplit(address).hostname}"]
    environment = {"GPUEXPLORE_FRAMED_BY": FRAMED_BY[here], **os.environ}
    log = data_directory() / "logs" / LOG
    log.parent.mkdir(exist_ok=True)
    with log.open("wb") as said:
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,  # interrupting a cell does not reach it
        )
    try:
        _wait_until_served(process, port, log)
    except BaseException:
        process.terminate()
        process.wait()
        raise
    return process


def _wait_until_served(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    latest_s = time.monotonic() + START_S
    while not _answers(port):
        if process.poll() is not None:
            said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            raise NotStarted(f"The app did not start: {said[-1] if said else 'it said nothing'}")
        if time.monotonic() > latest_s:
            raise NotStarted(f"The app did not start: it did not answer in {START_S} s; its log is {log}")
        time.sleep(LOOK_S)


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://{LOOPBACK}:{port}/_stcore/health", timeout=1):
            return True
    except OSError:
        return False
