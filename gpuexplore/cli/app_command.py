"""`gpuexplore app`: serve the web app."""

import argparse
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
from importlib.util import find_spec

from gpuexplore.cli.output import declare, say
from gpuexplore.core import LAUNCHER, InvalidInput, require
from gpuexplore.jobs.server_settings import ALLOWED_HOSTS, LEADER_KEY, check_settings
from gpuexplore.operations import additions


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `app`."""
    declare(
        parser,
        {
            "--port": {"type": int, "default": 8501, "help": "default: %(default)s"},
            "--address": {"default": "127.0.0.1", "help": "default: %(default)s, this machine only"},
        },
    )
    for module in additions():
        module.add_app_arguments(parser)
    parser.add_argument(
        "--behind-proxy",
        default="",
        metavar="HOST",
        help="also accept requests for this host name: that of a reverse proxy in front of the app",
    )


def execute(arguments: argparse.Namespace) -> int:
    """Serve until interrupted or ended by a signal, which is passed on to the server."""
    if find_spec("streamlit") is None:
        raise ModuleNotFoundError("No module named 'streamlit'", name="streamlit")
    check_settings()
    _check_address(arguments.address, arguments.port)
    for module in additions():
        module.check_app_arguments(arguments)
    options = ["--server.port", str(arguments.port), "--server.address", arguments.address]
    environment = {"FORWARDED_ALLOW_IPS": "", **os.environ}  # uvicorn believes this machine; we believe named proxies
    if arguments.behind_proxy:
        proxy = _checked_proxy(arguments.behind_proxy)
        # Streamlit takes its websockets, whatever the Host they come with
        options += ["--browser.serverAddress", proxy]
        if own := environment.get(ALLOWED_HOSTS, "").strip():
            environment[ALLOWED_HOSTS] = f"{own},{proxy}"
    if not environment.get(LEADER_KEY):
        environment[LEADER_KEY] = secrets.token_urlsafe(18)
        host = "127.0.0.1" if arguments.address in ("0.0.0.0", "::", "") else arguments.address
        link = f"http://{host}:{arguments.port}/lessons?key={environment[LEADER_KEY]}"
        say(f"gpuexplore: the instructor's view of lessons (keep this link private): {link}")
    command = [sys.executable, "-m", "streamlit", "run", LAUNCHER.name, *options]
    interrupted = signal.signal(signal.SIGINT, signal.SIG_IGN)  # also in the server, until it has loaded
    try:
        server = subprocess.Popen(command, cwd=LAUNCHER.parent, env=environment)
    finally:
        signal.signal(signal.SIGINT, interrupted)
    passed_on = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]  # not on Windows
    before = {number: signal.signal(number, lambda *_: server.terminate()) for number in passed_on}
    try:
        code = server.wait()
        return code if code >= 0 else 128 - code  # of a signal, as a shell has it
    except KeyboardInterrupt:
        server.terminate()
        server.wait()
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _check_address(address: str, port: int) -> None:
    """Accept an address and a port to serve at.

    Raises:
        InvalidInput: there is no such port, or the address is none of this machine's.
    """
    require(1 <= port <= 65_535, "--port", port, "whole numbers from 1 to 65,535")
    try:
        (family, *_, found), *_ = socket.getaddrinfo(
            address or None, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        with socket.socket(family, socket.SOCK_STREAM) as trial:
            trial.bind(found)
    except (OSError, UnicodeError) as error:  # an unknown name, or another machine's address
        accepted = "addresses and names of this machine: 127.0.0.1, localhost, or 0.0.0.0 for all of them"
        raise InvalidInput.of("--address", address, accepted) from error


def _checked_proxy(host: str) -> str:
    """Return the name of a host in small letters, as browsers send it.

    Raises:
        InvalidInput: it is no such name (RFC 1123, 2.1).
    """
    require(
        re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?", host),
        "--behind-proxy",
        host,
        "a host name without scheme, port and path, like app.example.org",
    )
    return host.lower()
