"""`gpuexplore app`: serve the web app."""

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from gpuexplore.served import LAUNCHER

PASSED_ON = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]  # Windows has no SIGHUP
SIGNALLED = 128  # and the number of the signal, as a shell has it


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `app`."""
    parser.add_argument("--port", type=int, default=8501, help="default: %(default)s")
    parser.add_argument("--address", default="127.0.0.1", help="default: %(default)s, this machine only")


def execute(arguments: argparse.Namespace) -> int:
    """Serve until interrupted, or told to end: the server is told as well."""
    if find_spec("streamlit") is None:
        raise ModuleNotFoundError("No module named 'streamlit'", name="streamlit")
    options = ["--server.port", str(arguments.port), "--server.address", arguments.address]
    command = [sys.executable, "-m", "streamlit", "run", LAUNCHER.name, *options]
    environment = {"FORWARDED_ALLOW_IPS": "", **os.environ}  # uvicorn believes this machine; we believe named proxies
    with _interrupt_ignored():  # by the server while it is loading, which would say so over many lines
        server = subprocess.Popen(command, cwd=LAUNCHER.parent, env=environment)
    before = {number: signal.signal(number, lambda *_: server.terminate()) for number in PASSED_ON}
    try:
        code = server.wait()
        return code if code >= 0 else SIGNALLED - code
    except KeyboardInterrupt:
        server.terminate()
        server.wait()
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _interrupt_ignored() -> Iterator[None]:
    """Ignore Ctrl-C, here and in what is started inside until it decides for itself."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
