"""Hostile requests to a web server: the slowest answer about its health meanwhile, and its memory after.

    python -m benchmarks.attack [--busy LOOPS] [--times N]

A server of its own with an open room is sent runs that claim more than can be made, are nested too deep, or hold
millions of empty values, forty of each kind, twenty at a time. Printed for each: how it was answered, the
slowest of the answers of `/_stcore/health` meanwhile, and the memory of the web process above that at the start. It
asserts nothing.
"""

import argparse
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from types import MappingProxyType
from typing import Any

import psutil

from benchmarks.bias import busy_loop
from gpuexplore.model import SCHEMA_VERSION
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


ATTACKS: Mapping[str, Callable[[], bytes]] = MappingProxyType(
    {
        "shapes of 16M x 16M": claimed,
        "1.2 million empty shapes": lambda: report_of(shapes=[{}] * 1_200_000),
        "100,000 shapes": lambda: report_of(shapes=[{"m": each + 1, "k": 1, "n": 1} for each in range(100_000)]),
        "3 million brackets": lambda: b"[" * 3_000_000,
        "a number of 3 million digits": lambda: b'{"schema_version": ' + b"9" * 3_000_000 + b"}",
        "a million empty results": lambda: report_of([{}] * 1_000_000),
    }
)


class Health:
    """The seconds of each answer about the server's health, asked for all the while."""

    def __init__(self, port: int) -> None:
        self.port, self.slowest_s, self._stop = port, 0.0, Event()
        self._thread = Thread(target=self._look)

    def __enter__(self) -> "Health":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._stop.wait(LOOK_S):
            began_s = time.perf_counter()
            ask(self.port, "GET", "/_stcore/health")
            self.slowest_s = max(self.slowest_s, time.perf_counter() - began_s)


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


def attacked(port: int, code: str, content: bytes) -> Counter[int]:
    """Send a run again and again; return how often each status was answered."""

    def send(number: int) -> int:
        headers = {"Authorization": f"Bearer {SECRET}{number}"}
        return ask(port, "POST", f"/api/room?room={code}&name=Eve{number}", content, **headers)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return Counter(pool.map(send, range(POSTS)))


def main() -> None:
    """Attack a server, and print a line for each attack."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--busy", type=int, default=0, metavar="LOOPS", help="that compute beside it; default: 0")
    parser.add_argument("--times", type=int, default=1, help="how often each attack is made; default: 1")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        home = Path(stack.enter_context(TemporaryDirectory(prefix="gpuexplore-", ignore_cleanup_errors=True)))
        store = stack.enter_context(open_store(f"sqlite:///{home}/gpuexplore.sqlite3"))
        room, _ = store.open_room("leader", "attacked", 4)
        for _ in range(arguments.busy):
            stack.enter_context(busy_loop())
        environment = {**os.environ, "GPUEXPLORE_HOME": str(home), "GPUEXPLORE_SUPERVISOR": "external"}
        process, address = stack.enter_context(streamlit_served(home, "app.py", environment))
        port, server = int(address.rpartition(":")[2]), psutil.Process(process.pid)
        time.sleep(5)  # for what it imports beside
        start_bytes = server.memory_info().rss
        print(f"{'attack':32}{'seconds':>9}{'slowest health, s':>19}{'memory, MB':>12}  answers")
        for name, made in (each for each in ATTACKS.items() for _ in range(arguments.times)):
            content, began_s = made(), time.perf_counter()
            with Health(port) as health:
                answers = attacked(port, room.code, content)
            more = (server.memory_info().rss - start_bytes) / 1e6
            took_s = time.perf_counter() - began_s
            print(f"{name:32}{took_s:9.1f}{health.slowest_s:19.2f}{more:+12.0f}  {dict(answers)}", flush=True)


if __name__ == "__main__":
    main()
