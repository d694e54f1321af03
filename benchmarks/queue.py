"""The queue under load: how fast it is claimed from, how fair its turns are, and what lies between two runs.

    python -m benchmarks.queue [--only NAME,..]

Everything runs on this machine, with a home of its own, and is printed beside what it is compared with: a bare
`UPDATE ... RETURNING` of the same database for the claims, the equal share for the turns. It asserts nothing.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from statistics import median

import psutil
from sqlalchemy import select, update

from gpuexplore import __version__
from gpuexplore.core.model import Device, Experiment, Options, Run, RunState, Shape
from gpuexplore.hardware.discovery import VARIABLE, discover
from gpuexplore.store import Store, Supervisor, open_store
from gpuexplore.store.tables import RUNS
from tests import postgresql

QUEUED, DEVICES, HOSTS, OWNERS = 10_000, 64, 8, 500
CLAIMS = 3_000
SHORT_OWNERS, LONG_RUNS = 60, 100
PEOPLE, WITHIN_S, SMALL_S = 30, 10.0, 2.0
LOOK_S = 0.1
PATIENCE_S = 240.0
together: Barrier
UNLIMITED = {f"GPUEXPLORE_LIMIT_{name}": "100000000" for name in ("WAITING", "WAITING_PER_OWNER")} | {
    "GPUEXPLORE_LIMIT_DEVICE_SECONDS_PER_HOUR": "100000000"
}


def claims() -> None:
    """Claim from 10,000 runs for 64 devices, by eight supervisors at once; ask for positions."""
    with ExitStack() as stack:
        urls = {"SQLite": f"sqlite:///{_folder(stack)}/queue.sqlite3"}
        if postgresql.why_not() is None:
            urls["PostgreSQL"] = stack.enter_context(postgresql.server(_folder(stack))).url
        for name, url in urls.items():
            with open_store(url) as store:
                _claim_all(name, url, store)


def _claim_all(name: str, url: str, store: Store) -> None:
    ids = [store.submit(_on(f"sim:{number % DEVICES}"), f"owner {number % OWNERS}") for number in range(QUEUED)]
    for host in range(HOSTS):
        devices = [Device(device, "simulated", "simulated") for device in _devices_of(host)]
        store.heartbeat(_instance(host), state="ready", devices=devices)
    asked_s = [_seconds(lambda run_id=run_id: store.position(run_id)) for run_id in ids[:: QUEUED // 50]]
    _say(f"{name}: position among {QUEUED:,} runs", f"{median(asked_s) * 1e3:.2f} ms", "2 ms")
    bare_s = _seconds(lambda: [_bare_update(store) for _ in range(200)]) / 200
    spawn = get_context("spawn")
    with spawn.Pool(HOSTS, _start_together, (spawn.Barrier(HOSTS),)) as supervisors:
        parts = supervisors.starmap(_claims_of, [(url, host) for host in range(HOSTS)], chunksize=1)
    claimed = [run_id for part in parts for run_id in part.run_ids]
    rate = len(claimed) / (max(part.ended_s for part in parts) - min(part.started_s for part in parts))
    _say(f"{name}: claims a second, {HOSTS} supervisors", f"{rate:.0f}", "500", f"bare update {1 / bare_s:.0f}")
    _say(f"{name}: claimed twice", str(len(claimed) - len(set(claimed))), "0")
    _say(f"{name}: asked for and not claimed", str(CLAIMS - len(claimed)), "0")


@dataclass(frozen=True, slots=True)
class _Claimed:
    run_ids: list[str]
    started_s: float
    ended_s: float


def _start_together(barrier: Barrier) -> None:
    """Keep, in a supervisor's process, what all of them wait for before their first claim."""
    global together  # noqa: PLW0603 - a pool's processes get a barrier in no other way
    together = barrier


def _claims_of(url: str, host: int) -> _Claimed:
    with open_store(url) as store:
        together.wait(60)
        started_s = time.perf_counter()
        devices = (_devices_of(host)[number % (DEVICES // HOSTS)] for number in range(CLAIMS // HOSTS))
        claims = [store.claim(_instance(host).name, {device}) for device in devices]
        return _Claimed([claim.run_id for claim in claims if claim], started_s, time.perf_counter())


def _bare_update(store: Store) -> None:
    waiting = select(RUNS.c.number).where(RUNS.c.state == RunState.QUEUED).limit(1).scalar_subquery()
    with store.writing() as connection:
        connection.execute(update(RUNS).where(RUNS.c.number == waiting).values(current=None).returning(RUNS.c.id)).all()


def turns() -> None:
    """Let sixty owners queue one short run each beside one who queues a hundred; a real supervisor measures them."""
    with ExitStack() as stack:
        home = _folder(stack)
        store = stack.enter_context(open_store(f"sqlite:///{home}/gpuexplore.sqlite3"))
        stack.enter_context(_supervisor(home, store))
        many = [store.submit(_short(), "many", estimated_s=0.3) for _ in range(LONG_RUNS)]
        few = [store.submit(_short(), f"owner {number}", estimated_s=0.3) for number in range(SHORT_OWNERS)]
        _wait(lambda: all(_ended(store, run_id) for run_id in few))
        shares = [store.load_summary(run_id).device_s for run_id in few]
        shares.append(sum(store.load_summary(run_id).device_s for run_id in many))
        _say(f"Jain's index over {len(shares)} owners", f"{_jain(shares):.3f}", "above 0.95", "equal shares 1")
        _wait(lambda: all(_ended(store, run_id) for run_id in many))
        spans = sorted(_span(store.load_summary(run_id)) for run_id in (*few, *many))
        gaps_s = [later[0] - earlier[1] for earlier, later in pairwise(spans)]
        _say("runs that overlap", str(sum(gap_s < 0 for gap_s in gaps_s)), "0")
        _say("gap between two runs, median", f"{median(gaps_s) * 1e3:.1f} ms", "5 ms")
        long_run = store.submit(_long(), "many", estimated_s=20.0)
        _wait(lambda: store.load_summary(long_run).state is RunState.RUNNING)
        time.sleep(1)
        asked_s, short_run = time.perf_counter(), store.submit(_short(), "late", estimated_s=0.3)
        _wait(lambda: store.load_summary(short_run).state is not RunState.QUEUED)
        _say("start behind a run of 20 s", f"{time.perf_counter() - asked_s:.1f} s", "6 s")
        store.request_cancel(long_run, "many")


def room() -> None:
    """Let thirty owners queue a small request of their own each within ten seconds; a real supervisor measures them."""
    _measure_room("cpu")


def simulated_room() -> None:
    """Do the same on a simulated device: a busy machine changes little, and nothing is computed."""
    os.environ[VARIABLE] = "1"
    _measure_room("simulated:0")


def slow_room() -> None:
    """Let thirty owners queue a request in fp32, bf16 and fp16; a chart stands with the points of native dtypes.

    Others take up to seconds a call. On a processor that computes fp16 in hardware it is a room like any other.
    """
    with ExitStack() as stack:
        home = _folder(stack)
        store = stack.enter_context(open_store(f"sqlite:///{home}/gpuexplore.sqlite3"))
        stack.enter_context(_supervisor(home, store))
        began_s, asked, charts = time.monotonic(), dict[str, float](), dict[str, float]()
        native = next(device.native for device in discover() if device.kind == "cpu")
        quick = sum(case.dtype in native for case in _with_fp16(0).cases())
        while len(charts) < PEOPLE and time.monotonic() - began_s < PATIENCE_S:
            now_s = time.monotonic() - began_s
            if len(asked) < min(PEOPLE, 1 + int(now_s / WITHIN_S * PEOPLE)):
                asked[store.submit(_with_fp16(len(asked)), f"owner {len(asked)}", estimated_s=SMALL_S)] = now_s
            for run_id in asked.keys() - charts.keys():
                if store.load_summary(run_id).progress.measured >= quick:
                    charts[run_id] = now_s - asked[run_id]
            time.sleep(LOOK_S)
        _say(f"{PEOPLE} requests with fp16: no first chart", str(PEOPLE - len(charts)), "0", f"of {', '.join(native)}")
        _say(f"{PEOPLE} requests with fp16: first chart, median", f"{median(charts.values()):.1f} s", "15 s")
        _say(f"{PEOPLE} requests with fp16: first chart, longest", f"{max(charts.values()):.1f} s", "15 s")


def _measure_room(device: str) -> None:
    with ExitStack() as stack:
        home = _folder(stack)
        store = stack.enter_context(open_store(f"sqlite:///{home}/gpuexplore.sqlite3"))
        supervisor = stack.enter_context(_supervisor(home, store))
        before_s, began_s = _cpu_s(supervisor), time.monotonic()
        asked, charts, ended = dict[str, float](), dict[str, float](), dict[str, float]()
        while len(ended) < PEOPLE:
            now_s = time.monotonic() - began_s
            if len(asked) < min(PEOPLE, 1 + int(now_s / WITHIN_S * PEOPLE)):
                asked[store.submit(_small(len(asked), device), f"owner {len(asked)}", estimated_s=SMALL_S)] = now_s
            for run_id in asked.keys() - ended.keys():
                run = store.load_summary(run_id)
                if run.progress.measured == run.progress.total:
                    charts.setdefault(run_id, now_s - asked[run_id])
                if not run.active:
                    ended[run_id] = now_s - asked[run_id]
            time.sleep(LOOK_S)
        for what, seconds, aim in (("whole first chart", charts, "15 s"), ("last result", ended, "-")):
            _say(f"{PEOPLE} small requests: {what}, median", f"{median(seconds.values()):.1f} s", aim)
            _say(f"{PEOPLE} small requests: {what}, longest", f"{max(seconds.values()):.1f} s", aim)
        busy_s, whole_s = _cpu_s(supervisor) - before_s, time.monotonic() - began_s
        budgets_s = PEOPLE * len(_small(0, device).cases()) * Options().budget_s
        _say("CPU seconds a request", f"{busy_s / PEOPLE:.2f} s", "-", f"sampling budget {budgets_s / PEOPLE:.2f} s")
        _say("seconds a request", f"{whole_s / PEOPLE:.2f} s", "-", f"sampling budget {budgets_s / PEOPLE:.2f} s")


def _cpu_s(process: psutil.Process) -> float:
    """Return the CPU seconds of a process and of its descendants that live."""
    times = [each.cpu_times() for each in (process, *process.children(recursive=True))]
    return sum(each.user + each.system for each in times)


def _small(number: int, device: str) -> Experiment:
    """Return a request of its own, of twelve points."""
    shapes = tuple(Shape.of(m=size, k=size, n=size) for size in (64 + number, 128 + number, 256 + number))
    return Experiment("matmul", shapes, ("fp32", "fp64"), ("numpy", "torch"), (device,))


def _with_fp16(number: int) -> Experiment:
    """Return a request of its own, of twelve points, four of them in fp16."""
    shapes = tuple(Shape.of(m=size, k=size, n=size) for size in (256 + number, 1024 + number))
    return Experiment("matmul", shapes, ("fp32", "bf16", "fp16"), ("numpy", "torch"))


def _short() -> Experiment:
    """Return a run that spends its budget each time, so that shares differ by whose turn it was and by nothing else."""
    shape = Shape.of(m=1600, k=1600, n=1600)  # a call of 50 ms: the ten samples that might settle take longer
    return Experiment("matmul", (shape,), ("fp32",), ("numpy",), options=Options(budget_s=0.2))


def _long() -> Experiment:
    shapes = tuple(Shape.of(m=size, k=size, n=size) for size in range(1400, 1440))
    return Experiment("matmul", shapes, ("fp32",), ("numpy",), options=Options(budget_s=0.5))


@contextmanager
def _supervisor(home: Path, store: Store) -> Iterator[psutil.Process]:
    environment = os.environ | {"GPUEXPLORE_HOME": str(home), "GPUEXPLORE_LOCKS": str(home / "locks")}
    command = [sys.executable, "-m", "gpuexplore.jobs.supervisor", "--log", str(home / "supervisor.log")]
    process = subprocess.Popen(command, env=environment)
    try:
        _wait(lambda: (found := store.supervisor()) is not None and found.state == "ready")
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(20)


def _wait(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"not within {PATIENCE_S:g} s")
        time.sleep(0.05)


def _ended(store: Store, run_id: str) -> bool:
    return not store.load_summary(run_id).active


def _span(run: Run) -> tuple[float, float]:
    started, finished = (datetime.fromisoformat(str(moment)) for moment in (run.started_utc, run.finished_utc))
    return started.timestamp(), finished.timestamp()


def _jain(shares: Sequence[float]) -> float:
    """Return the fairness index of Jain, Chiu and Hawe (1984): 1 for equal shares, 1/n when one has all."""
    return sum(shares) ** 2 / (len(shares) * sum(share**2 for share in shares))


def _on(device: str) -> Experiment:
    return Experiment("matmul", (Shape.of(m=1, k=1, n=1),), ("fp32",), ("numpy",), (device,))


def _devices_of(host: int) -> list[str]:
    each = DEVICES // HOSTS
    return [f"sim:{number}" for number in range(host * each, (host + 1) * each)]


def _instance(host: int) -> Supervisor:
    return Supervisor(
        f"host{host}/benchmark", host=f"host{host}", scope=f"{host}", pid=os.getpid(), version=__version__
    )


def _folder(stack: ExitStack) -> Path:
    return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gpuexplore-", ignore_cleanup_errors=True)))


def _seconds(act: Callable[[], object]) -> float:
    started_s = time.perf_counter()
    act()
    return time.perf_counter() - started_s


def _say(what: str, value: str, aim: str, beside: str = "") -> None:
    print(f"{what:48s} {value:>10s}   aim {aim:12s} {beside}", flush=True)


SCENARIOS = {scenario.__name__: scenario for scenario in (claims, turns, room, slow_room, simulated_room)}


def main() -> None:
    """Run the scenarios that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default=",".join(SCENARIOS), metavar="NAME,..", help=f"of {', '.join(SCENARIOS)}")
    names = parser.parse_args().only.split(",")
    if unknown := [name for name in names if name not in SCENARIOS]:
        parser.error(f"--only {', '.join(unknown)}: accepted are {', '.join(SCENARIOS)}")
    os.environ |= UNLIMITED
    for name in names:
        SCENARIOS[name]()


if __name__ == "__main__":
    main()
