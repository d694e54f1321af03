"""Hostile requests to a web server: the slowest answer about its health meanwhile, and its memory after.

    python -m benchmarks.attack [--busy LOOPS] [--times N] [--files N] [--only TEXT]

A server of its own with an open room is sent runs that claim more than can be made, are nested too deep, or hold
millions of empty values, forty of each kind, twenty at a time; files of that kind from seven pages at a time; a
thousand connections that never ask anything to the end, and pages that never close. Between them a hundred browsers
with empty caches open a page. Printed for each: how it was answered, the slowest of the answers of `/_stcore/health`
meanwhile, and the memory of the web process above that at the start. `--files` is the hard limit of its open files. It
asserts nothing.
"""

import argparse
import asyncio
import gzip
import json
import os
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from http import HTTPStatus
from http.client import HTTPConnection
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

import psutil

from benchmarks.bias import busy_loop
from benchmarks.strangers import ColdBrowser, Uploader, drawn, half_open
from benchmarks.visitor import Visitor
from gpuexplore.core.model import SCHEMA_VERSION
from gpuexplore.features.machine_code.ui.machine_code import FILE
from gpuexplore.store import open_store
from scripts.app_server import streamlit_served

POSTS, AT_ONCE, TIMEOUT_S = 40, 20, 120.0
SECRET = "attacker" * 4
LOOK_S = 0.05


def report_of(results: list[Any] | None = None, **experiment: Any) -> bytes:
    """Return an exported run of one product, with some of it replaced."""
    whole = {"operation": "matmul", "shapes": [{"m": 64, "k": 64, "n": 64}], "dtypes": ["fp32"],
             "implementations": ["numpy"], "devices": ["cpu"], **experiment}  # fmt: skip
    report = {"schema_version": SCHEMA_VERSION, "experiment": whole, "results": results or []}
    return json.dumps(report, separators=(",", ":")).encode()


def claimed() -> bytes:
    """Return results of a softmax of 16M x 16M whose tolerance would need its inputs to be made again."""
    shape = {"m": 2**24, "n": 2**24}
    row = {"operation": "softmax", "shape": shape, "dtype": "fp16", "implementation": "numpy", "device": "cpu",
           "status": "ok", "seed": 1, "accuracy": {"relative_error": 0.0, "tolerance": 0.09},
           "measurement": {"samples_s": [1.0] * 9, "first_call_s": 1.0}}  # fmt: skip
    return report_of([row], operation="softmax", shapes=[shape], dtypes=["fp16"])


RUNS: Mapping[str, Callable[[], bytes]] = MappingProxyType(
    {
        "shapes of 16M x 16M": claimed,
        "1.2 million empty shapes": lambda: report_of(shapes=[{}] * 1_200_000),
        "100,000 shapes": lambda: report_of(shapes=[{"m": each + 1, "k": 1, "n": 1} for each in range(100_000)]),
        "3 million brackets": lambda: b"[" * 3_000_000,
        "a number of 3 million digits": lambda: b'{"schema_version": ' + b"9" * 3_000_000 + b"}",
        "a million empty results": lambda: report_of([{}] * 1_000_000),
    }
)


FILES: Mapping[str, tuple[str, str, Callable[[], bytes]]] = MappingProxyType(  # page, name, content
    {
        "a trace of brackets": ("trace", "a.json", lambda: b"[" * 4_900_000),
        "a packed trace of 4 GB": ("trace", "a.json.gz", lambda: gzip.compress(b" " * 2**30) * 4),
        "PTX of `.extern .shared`": ("kernels", "a.ptx", lambda: b".extern .shared " * 260_000),
        "PTX of comments without an end": ("kernels", "a.ptx", lambda: b"/* " * 1_300_000),
        "an import of empty shapes": ("runs", "a.json", lambda: report_of(shapes=[{}] * 1_200_000)),
    }
)
PAGES, CROWD, CONNECTIONS, SESSIONS = 7, 100, 1000, 400
HOLD_S = 5.0


class Health:
    """The seconds of the slowest answer about the server's health, asked for all the while.

    By a process of its own: in this one, hundreds of visitors keep the interpreter busy.
    """

    def __init__(self, port: int) -> None:
        self.slowest_s = 0.0
        self._context = get_context("spawn")
        self._ours, theirs = self._context.Pipe()
        self._process = self._context.Process(target=_look, args=(port, theirs), daemon=True)

    def __enter__(self) -> "Health":
        self._process.start()
        self._ours.recv()  # it has begun
        return self

    def __exit__(self, *_: object) -> None:
        self._ours.send(None)
        self.slowest_s = self._ours.recv()
        self._process.join()


def _look(port: int, asked: Connection) -> None:
    slowest_s = 0.0
    asked.send(None)
    while not asked.poll(LOOK_S):
        began_s = time.perf_counter()
        ask(port, "GET", "/_stcore/health")
        slowest_s = max(slowest_s, time.perf_counter() - began_s)
    asked.send(slowest_s)


def ask(port: int, method: str, path: str, body: bytes = b"", **headers: str) -> int:
    """Return the status of an answer; 0 where there is none."""
    connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        answer.read()
    except OSError:
        return 0
    finally:
        connection.close()
    return answer.status


def sent_runs(address: str, code: str, content: bytes) -> Counter[str]:
    """Send a run into the room again and again; return how often each status was answered."""
    port = int(address.rpartition(":")[2])

    def send(number: int) -> str:
        headers = {"Authorization": f"Bearer {SECRET}{number}"}
        return str(ask(port, "POST", f"/api/room?room={code}&name=Eve{number}", content, **headers))

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return Counter(pool.map(send, range(POSTS)))


async def uploaded(address: str, page: str, name: str, content: bytes) -> Counter[str]:
    """Upload a file to a page from many at once; return what they said at last."""

    async def upload(number: int) -> str:
        visitor = Uploader(address, page)
        await visitor.open()
        try:
            if page == "kernels":
                await visitor.choose("Of", FILE)
            status = await visitor.upload(name, content + b" " * number)  # none is another one's
            if status != HTTPStatus.NO_CONTENT:
                return str(status)
            said = [each for each in visitor.said if name.partition(".")[0] in each or "file" in each]
            return said[0][:70] if said else "nothing said"
        finally:
            await visitor.close()

    found = await asyncio.gather(*map(upload, range(PAGES)), return_exceptions=True)
    return Counter(str(each) for each in found)


async def many_uploads(address: str) -> Counter[str]:
    """Send sixty files of 4.9 MB to one page; return the statuses."""
    visitor = Uploader(address, "trace")
    await visitor.open()
    try:
        return Counter([str(await visitor.upload("a.json", b"[" * 4_900_000)) for _ in range(60)])
    finally:
        await visitor.close()


async def connections(address: str) -> Counter[str]:
    """Hold connections that never ask to the end; return how many there were."""
    held = await half_open(address, CONNECTIONS)
    await asyncio.sleep(HOLD_S)
    for writer in held:
        writer.close()
    return Counter({"held": len(held)})


async def sessions(address: str) -> Counter[str]:
    """Open pages and keep them open; return how many were drawn."""
    visitors = [Visitor(address) for _ in range(SESSIONS)]
    seconds, failed = await drawn(visitors)
    await asyncio.sleep(HOLD_S)
    for visitor in visitors:
        await visitor.close()
    return Counter({"drawn": len(seconds), "refused": len(failed)})


async def browsers(address: str) -> Counter[str]:
    """Open a page in a hundred browsers with empty caches; return how many were drawn."""
    visitors = [ColdBrowser(address) for _ in range(CROWD)]
    seconds, failed = await drawn(visitors)
    for visitor in visitors:
        await visitor.close()
    return Counter({f"drawn, the last after {max(seconds, default=0):.1f} s": len(seconds)} | Counter(failed))


def attacks(address: str, code: str) -> Iterator[tuple[str, Callable[[], Counter[str]]]]:
    """Yield what is done to the server, one after the other, with its name."""
    crowd = f"{CROWD} cold browsers", lambda: asyncio.run(browsers(address))
    yield crowd
    for name, made in RUNS.items():
        yield f"a run: {name}", partial(sent_runs, address, code, made())
    for name, (page, file, content) in FILES.items():
        yield f"a file: {name}", partial(asyncio.run, uploaded(address, page, file, content()))
    yield "60 uploads of a page", lambda: asyncio.run(many_uploads(address))
    yield f"{CONNECTIONS} connections", lambda: asyncio.run(connections(address))
    yield f"{SESSIONS} pages", lambda: asyncio.run(sessions(address))
    yield crowd


def main() -> None:
    """Attack a server, and print a line for each attack."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--busy", type=int, default=0, metavar="LOOPS", help="that compute beside it; default: 0")
    parser.add_argument("--times", type=int, default=1, help="how often each attack is made; default: 1")
    parser.add_argument("--files", type=int, metavar="N", help="that the server may open; default: as this process")
    parser.add_argument("--only", default="", metavar="TEXT", help="attacks whose names hold it; default: all")
    arguments = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # this process opens as many
    with ExitStack() as stack:
        home = Path(stack.enter_context(TemporaryDirectory(prefix="gpuexplore-", ignore_cleanup_errors=True)))
        store = stack.enter_context(open_store(f"sqlite:///{home}/gpuexplore.sqlite3"))
        room, _ = store.open_room("leader", "attacked", 4)
        for _ in range(arguments.busy):
            stack.enter_context(busy_loop())
        environment = {**os.environ, "GPUEXPLORE_HOME": str(home), "GPUEXPLORE_SUPERVISOR": "external"}
        process, address = stack.enter_context(streamlit_served(home, "app.py", environment, arguments.files))
        server = psutil.Process(process.pid)
        time.sleep(5)  # for what it imports beside
        start_bytes = server.memory_info().rss
        print(f"{'attack':42}{'seconds':>9}{'slowest health, s':>19}{'memory, MB':>12}{'files':>7}  answers")
        for _ in range(arguments.times):
            for name, attack in attacks(address, room.code):
                if arguments.only not in name:
                    continue
                began_s = time.perf_counter()
                with Health(int(address.rpartition(":")[2])) as health:
                    answers = attack()
                more = (server.memory_info().rss - start_bytes) / 1e6
                took_s = time.perf_counter() - began_s
                said = ", ".join(f"{count} {answer}" for answer, count in answers.items())
                print(
                    f"{name:42}{took_s:9.1f}{health.slowest_s:19.2f}{more:+12.0f}{server.num_fds():7}  {said}",
                    flush=True,
                )
        print(f"log: {(home / 'server.log').stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
