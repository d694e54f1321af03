"""A PostgreSQL server of the tests' own, in a folder that goes with them; it listens on a socket file only."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.waiting import DEADLINE_S

ACCOUNT = "postgres"  # the server refuses to run as root


def why_not():
    """Return why no server can be started here, or None."""
    if binaries() is None:
        return "no PostgreSQL server is installed: apt-get install postgresql"
    return None


def binaries():
    """Return the folder with `initdb` and `postgres`, or None."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return folders[-1] if folders else None


class Server:
    """A server that a test may stop and start again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"postgresql+psycopg://{ACCOUNT}@/postgres?host={folder}"
        self._account = {"user": ACCOUNT, "group": ACCOUNT} if os.getuid() == 0 else {}
        self._process = None

    def create(self):
        if self._account:
            shutil.chown(self.folder, ACCOUNT, ACCOUNT)
        self._run("initdb", "-D", "data", "-U", ACCOUNT, "-A", "trust", "-E", "UTF8", "--no-sync")

    def start(self):
        options = ["-k", str(self.folder), "-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=200"]
        command = [binaries() / "postgres", "-D", self.folder / "data", *options]
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, **self._account)
        self._run("pg_isready", "-h", str(self.folder), "-t", "30", until_ok=True)

    def stop(self):
        """End it at once, as an administrator who restarts it would."""
        if self._process is not None:
            self._process.send_signal(2)  # fast shutdown
            self._process.wait(DEADLINE_S)
            self._process = None

    def _run(self, program, *arguments, until_ok=False):
        command = [binaries() / program, *arguments]
        for _ in range(100 if until_ok else 1):
            done = subprocess.run(command, cwd=self.folder, capture_output=True, check=False, **self._account)
            if done.returncode == 0:
                return
        raise RuntimeError(f"{program}: {done.stderr.decode()}")


@contextmanager
def server(folder: Path) -> Iterator[Server]:
    """Start a server in an empty folder; it ends with the block."""
    new = Server(folder)
    new.create()
    new.start()
    try:
        yield new
    finally:
        new.stop()
