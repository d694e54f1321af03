"""Functions for cells of a notebook: the magic `%gpuexplore`, the app below a cell, and files for readers.

A line of the magic is a command, as in a shell; what `run` measures is returned, and drawn.

IPython is never imported: values draw themselves, by `_repr_html_` and `__repr__`, as its display asks them to.
"""

import argparse
import atexit
import html
import os
import shlex
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from gpuexplore.api import Outcome
from gpuexplore.cli import execute_command, main, run_command
from gpuexplore.cli.output import EXIT_OK, say
from gpuexplore.core.errors import GpuExploreError, InvalidInput, require
from gpuexplore.hardware.directories import data_directory

HOLDING: Mapping[str, str] = {  # commands that would keep the cell until they are interrupted, and what to do instead
    "app": "in a notebook: from gpuexplore.notebook import show_app; show_app()",
    "worker": "in a shell, where it may stay",
}


def register(shell: Any) -> None:
    """Add the magic to a shell of IPython."""
    shell.register_magic_function(_carry_out, magic_kind="line", magic_name="gpuexplore")


def _carry_out(line: str) -> Outcome | None:
    """Do what `gpuexplore` does in a shell with the same words, e.g. `%gpuexplore run matmul --size 512 --dtype fp32`.

    `run` returns what `gpuexplore.run` does, measured in processes of its own: `out = %gpuexplore run matmul`. With
    `--json` it prints, as every other command. What cannot be done is said in a sentence, without a traceback.
    """
    outcomes: list[Outcome] = []

    def execute(arguments: argparse.Namespace) -> int:
        if arguments.command in HOLDING:
            raise InvalidInput.of("command", arguments.command, HOLDING[arguments.command])
        if arguments.command != "run" or arguments.json:
            return execute_command(arguments)
        arguments.is_shown = False
        outcomes.append(Outcome(*run_command.carry_out(arguments), arguments.baseline, arguments.peak))
        return EXIT_OK

    try:
        words = shlex.split(line)
    except ValueError as error:  # a quote is left open, or nothing follows a backslash
        say(f"gpuexplore: {InvalidInput.of('line', line, f'words as in a shell; this one: {error}')}")
        return None
    try:
        main(words, execute)
    except InvalidInput as error:
        say(f"gpuexplore: {error}")
    except SystemExit:  # argparse has said why, or has helped
        return None
    return outcomes[0] if outcomes else None


# Where a notebook runs: what its browser can reach and how files leave it differ.


Platform = Literal["colab", "kaggle", "jupyter"]


def platform() -> Platform:
    """Return the service this process runs in, by the variables that it sets; else Jupyter."""
    if os.environ.get("KAGGLE_KERNEL_RUN_TYPE"):  # first: Kaggle's image is built from Colab's
        return "kaggle"
    return "colab" if os.environ.get("COLAB_RELEASE_TAG") else "jupyter"


# Shows the app below a cell, as far as the notebook's service lets a browser reach it.


START_S = 120  # a cold machine loads for half a minute
LOOPBACK = "127.0.0.1"
FRAMED_BY: Mapping[Platform, str] = {  # pages that show the app; Colab's outputs are frames of a domain of their own
    "colab": "https://colab.research.google.com,https://*.googleusercontent.com,https://*.prod.colab.dev",
    "jupyter": "http://localhost:*,http://127.0.0.1:*",
}

HEIGHT_PX = 900
ENDS_WITH = "It ends with this notebook, or with .close()."
SERVED: "list[App]" = []  # in this process, the latest one last


@dataclass(eq=False, slots=True, repr=False)
class App:
    """The app while it is served for a notebook; drawn as a frame with its first page.

    Attributes:
        platform: where the notebook runs.
        address: where a browser reaches it; None where none can.
        port: on the notebook's machine; None where it is not served.
        process: the server; None where there is none.
    """

    platform: Platform
    address: str | None = None
    port: int | None = None
    process: subprocess.Popen[bytes] | None = None

    @property
    def is_served(self) -> bool:
        """Return whether the server runs."""
        return self.process is not None and self.process.poll() is None

    def close(self) -> None:
        """End the server, and what it started."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait()

    def __repr__(self) -> str:
        if self.address is None:
            return (
                "Kaggle's machines have no port that a browser can reach, so the app cannot be shown here. Measure "
                "with %gpuexplore or gpuexplore.run, and download a recording: import it on the page Runs of an app "
                "on your own machine."
            )
        if not self.is_served:
            return f"The app on {self.address} has ended."
        return f"The app is on {self.address}. {ENDS_WITH}"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: a link, and the page in a frame unless the service has drawn that already."""
        if not self.is_served:
            return f"<p>{html.escape(repr(self))}</p>"
        address = html.escape(f"{self.address}")
        link = f'<p>The app <a href="{address}" target="_blank">in a tab of its own</a>. {ENDS_WITH}</p>'
        if self.platform == "colab":
            return link
        return f'{link}<iframe src="{address}" width="100%" height="{HEIGHT_PX}" style="border: 0"></iframe>'


def show_app(port: int | None = None) -> App:
    """Serve the app on a port of this machine and return it, to be drawn below the cell.

    Args:
        port: None for the app that is served already, else for a port that is free.

    Raises:
        InvalidInput: the port is none, or something else listens on it.
        GpuExploreError: the server ended, or did not answer in time; says why.
    """
    here = platform()
    if here == "kaggle":
        return App(here)
    app = next((app for app in SERVED if app.is_served and port in (None, app.port)), None) or _started(port, here)
    if here == "colab":
        _colab().serve_kernel_port_as_iframe(app.port, height=str(HEIGHT_PX))
    return app


def _started(port: int | None, here: Platform) -> App:
    chosen = _checked_port(port)
    address = (
        str(_colab().eval_js(f"google.colab.kernel.proxyPort({chosen})")).rstrip("/")
        if here == "colab"
        else f"http://localhost:{chosen}"
    )  # as Jupyter is opened: its cookies are not those of 127.0.0.1
    app = App(here, address, chosen, _served(chosen, here, address))
    SERVED.append(app)
    atexit.register(app.close)
    return app


def _colab() -> Any:
    from google.colab import output

    return output


# Starts `gpuexplore app` next to a notebook and waits until it answers.


def _checked_port(port: int | None) -> int:
    """Return the port, or one that is free.

    Raises:
        InvalidInput: it is none, or something listens on it.
    """
    if port is not None and (not isinstance(port, int) or isinstance(port, bool) or not 0 < port <= 65535):
        raise InvalidInput.of("port", port, "whole numbers from 1 to 65535, or None for a free port")
    with socket.socket() as probe:
        try:
            probe.bind((LOOPBACK, port or 0))
        except OSError as error:
            accepted = f"free ports that this user may listen on; this one: {error.strerror}"
            raise InvalidInput.of("port", port, accepted) from error
        return int(probe.getsockname()[1])


def _served(port: int, here: Platform, address: str) -> subprocess.Popen[bytes]:
    """Return the process that serves the app, once it answers.

    Args:
        port: what it listens on.
        here: where the notebook runs.
        address: under which browsers reach the port.

    Raises:
        GpuExploreError: it ended, or took too long; says why.
    """
    command = [sys.executable, "-m", "gpuexplore", "app", "--port", str(port)]
    if here == "colab":
        command += ["--behind-proxy", f"{urlsplit(address).hostname}"]
    environment = {"GPUEXPLORE_FRAMED_BY": FRAMED_BY[here], **os.environ}
    log = data_directory() / "logs" / "notebook-app.log"  # of the latest one
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
            raise GpuExploreError(f"The app did not start: {said[-1] if said else 'it printed nothing'}")
        if time.monotonic() > latest_s:
            raise GpuExploreError(f"The app did not start: it did not answer in {START_S} s; its log is {log}")
        time.sleep(0.2)


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://{LOOPBACK}:{port}/_stcore/health", timeout=1):
            return True
    except OSError:
        return False


# Hands files of a notebook's machine to its reader.


@dataclass(frozen=True, slots=True, repr=False)
class Files:
    """Files, and how to get them where the notebook runs; its repr is a sentence."""

    paths: tuple[Path, ...]
    platform: Platform

    def __repr__(self) -> str:
        ways = {
            "colab": "Your browser downloads them; they are also in the pane Files",
            "kaggle": "Kaggle keeps files in /kaggle/working, and lists them under Output",
            "jupyter": "Open or download them in the list of files of Jupyter",
        }
        return f"{ways[self.platform]}: {', '.join(str(path) for path in self.paths)}."


def new_folder() -> str:
    """Make a folder next to the notebook, named after the time, and return its name: no report is overwritten."""
    named = f"gpuexplore-{datetime.now(UTC):%Y%m%dT%H%M%S}"
    for number in count(1):
        name = named if number == 1 else f"{named}-{number}"
        try:
            Path(name).mkdir()
        except FileExistsError:
            continue
        return name
    raise AssertionError("numbers do not end")


def hand_over(*files: Path | str) -> Files:
    """Have the browser download `files` where the notebook's service can, and return how else to get them.

    Raises:
        InvalidInput: one of them is no file.
    """
    require(files, "files", "", "at least one file name")
    paths = tuple(_checked(file) for file in files)
    here = platform()
    if here == "colab":
        from google.colab import files as downloads

        for path in paths:
            downloads.download(str(path))
    return Files(paths, here)


def _checked(file: Path | str) -> Path:
    """Return the whole path of a file.

    Raises:
        InvalidInput: it is none.
    """
    require(isinstance(file, Path | str), "file", file, "names of files, as text")
    path = Path(file)
    try:
        is_there = path.is_file()
    except (OSError, ValueError):  # too long, or with a sign that no name has
        is_there = False
    require(is_there, "file", file, "existing files: did the command that writes it succeed?")
    return path.resolve()


__all__ = ["App", "Files", "hand_over", "new_folder", "show_app"]
