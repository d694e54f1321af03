"""What a server takes under many visitors, beside a plain Streamlit script that measures in its own process.

Each scenario serves the app on this machine with a home of its own, whose store holds the results that are shipped, and
a stand-in for the measuring process: it reports itself and adds a result each second, so that nothing else takes the
cores. Visitors are `benchmarks.visitor`: they take cores too, the same for both servers. It asserts nothing.

    python -m benchmarks.server [--only NAME,..] [--root PATH]

`--root` serves another checkout, to compare versions.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, quantiles

import psutil

from benchmarks.visitor import Visitor
from gpuexplore import __version__
from gpuexplore.core.model import Experiment, Result, RunState, Shape
from gpuexplore.core.units import format_seconds
from gpuexplore.recorded import recorded_run, recordings, run_id_of
from gpuexplore.store import Store, Supervisor, WorkClaim, open_store
from scripts.app_server import ROOT, database_of, free_port, wait_until_served

PEER = "benchmarks/peer_app.py"
PAGES = ("", "devices", "kernels", "roofline", "what-if")
CROWD, FEW, KERNEL_PAGES = 100, 10, 20
WATCHED_S, SETTLE_S = 20.0, 20.0
ARRIVE_S = 5.0  # within which those who watch or wait open their pages
BEAT_S = 1.0
LARGE = Experiment(
    "matmul",
    tuple(Shape.of(m=size, k=size, n=size) for size in range(32, 32 * 65, 32)),
    ("fp64", "fp32", "bf16"),
    ("numpy", "numba-cpu", "numba-cpu-blocked", "numba-cpu-vector", "torch"),
)
COMPILER = "gpuexplore.features.machine_code.kernel_process"
OWNER = "benchmark"
STAND_IN = Supervisor("benchmark", host="benchmark", scope="benchmark", pid=os.getpid(), version=__version__)


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a scenario; `aim` is what the server is to stay below."""

    scenario: str
    what: str
    value: float | None
    aim: float
    show: Callable[[float], str]

    def __str__(self) -> str:
        value = "–" if self.value is None else self.show(self.value)
        return f"{self.scenario:10s} {self.what:44s} {value:>12s}   aim {self.show(self.aim)}"


@dataclass(frozen=True, slots=True)
class Served:
    """A server that is up, its process, and the store behind it."""

    address: str
    process: psutil.Process
    store: Store
    is_peer: bool

    @property
    def run_page(self) -> str:
        """The page that shows a run; of the peer its only one."""
        return "" if self.is_peer else "benchmark"

    def visitors(self, count: int, page: str = "", query: str = "") -> list[Visitor]:
        """Return so many browsers that have not opened their page yet."""
        return [Visitor(self.address, page, query) for _ in range(count)]

    def cpu_s(self) -> float:
        """Return the CPU seconds of the server and of what it started."""
        times = self.process.cpu_times()
        return times.user + times.system + times.children_user + times.children_system


Scenario = Callable[[Served], Awaitable[list[Figure]]]


# ------------------------------------------------------------------------------------------- scenarios


async def pages(served: Served) -> list[Figure]:
    """Open a page a hundred times at once, after one visit: seconds until the last one has rendered."""
    found = []
    for page in ("",) if served.is_peer else PAGES:
        async with opened(served.visitors(1, page)):
            pass
        async with opened(served.visitors(CROWD, page)) as seconds:
            what = f"{CROWD} x {page or 'start page'}, all rendered"
            found.append(Figure("pages", what, max(seconds), 3.0, _seconds))
    return found


async def watching(served: Served) -> list[Figure]:
    """Watch one run that grows: seconds from a tick to the end of its script."""
    claim = None if served.is_peer else submitted(served.store)
    query = f"run={claim.run_id}" if claim else "live=1"
    visitors = served.visitors(CROWD, served.run_page, query)
    async with measuring(served.store, claim), opened(visitors, ARRIVE_S):
        ticks_s, cores = await _watched(served, visitors)
    _say_errors(visitors)
    p50, p95 = (quantiles(ticks_s, n=20)[place] for place in (9, 18))
    return [
        Figure("watching", f"{CROWD} sessions, 1 s ticks: p50", p50, 0.1, _seconds),
        Figure("watching", f"{CROWD} sessions, 1 s ticks: p95", p95, 0.3, _seconds),
        Figure("watching", "cores used", cores, 1.0, _plain),
    ]


async def waiting(served: Served) -> list[Figure]:
    """Wait for one's turn: cores that the server uses meanwhile."""
    if served.is_peer:
        return [Figure("waiting", f"{CROWD} sessions waiting: cores used", None, 0.15, _plain)]
    owners = [f"{OWNER}.{number}" for number in range(CROWD)]
    runs = {owner: served.store.submit(_shipped(), owner) for owner in owners}
    visitors = [Visitor(served.address, "benchmark", f"run={run_id}", owner) for owner, run_id in runs.items()]
    async with measuring(served.store, None), opened(visitors, ARRIVE_S):
        _, cores = await _watched(served, visitors)
    _say_errors(visitors)
    return [Figure("waiting", f"{CROWD} sessions waiting: cores used", cores, 0.15, _plain)]


async def kernels(served: Served) -> list[Figure]:
    """Open the page Kernels on a cold cache: compilers that run at once, and CPU seconds."""
    if served.is_peer:
        return [Figure("kernels", f"{KERNEL_PAGES} cold pages", None, 5.0, _seconds)]
    before_s, most = served.cpu_s(), 0
    compiler_s: dict[int, float] = {}
    visitors = served.visitors(KERNEL_PAGES, "kernels")
    rendering = asyncio.gather(*(visitor.open() for visitor in visitors))
    while not rendering.done():
        running = [process for process in served.process.children(recursive=True) if _is_compiler(process)]
        compiler_s |= {process.pid: 0.0 for process in running}
        most = max(most, len(running))
        await asyncio.sleep(0.05)
    await rendering
    for visitor in visitors:
        await visitor.close()
    return [
        Figure("kernels", f"{KERNEL_PAGES} cold pages: compilers started", len(compiler_s), 1, _plain),
        Figure("kernels", "compilers at once", most, 1, _plain),
        Figure("kernels", "CPU seconds", served.cpu_s() - before_s, 5.0, _seconds),
    ]


async def large(served: Served) -> list[Figure]:
    """Open a finished run of many results ten times at once, on a server that had a visitor: seconds, bytes to each."""
    results = len(LARGE.cases())
    async with opened(served.visitors(1)):
        pass
    query = f"rows={results}"
    if not served.is_peer:
        query = f"run={served.store.record(LARGE, OWNER, results=_made_up(LARGE))}"
    visitors = served.visitors(FEW, served.run_page, query)
    async with opened(visitors) as seconds:
        sent = mean(visitor.received_bytes for visitor in visitors)
    _say_errors(visitors)
    return [
        Figure("large", f"{FEW} visitors, a run of {results} results", max(seconds), 3.0, _seconds),
        Figure("large", "sent to each", sent, 3e6, lambda value: f"{value / 1e6:.2g} MB"),
    ]


SCENARIOS: Mapping[str, Scenario] = {
    "pages": pages,
    "watching": watching,
    "waiting": waiting,
    "kernels": kernels,
    "large": large,
}


# ------------------------------------------------------------------------------------------- visitors


@asynccontextmanager
async def opened(visitors: Sequence[Visitor], within_s: float = 0.0) -> AsyncIterator[list[float]]:
    """Open every page, all at once or evenly within some seconds; give the seconds each took."""
    gap_s = within_s / len(visitors)
    try:
        yield await asyncio.gather(*(_later(place * gap_s, visitor) for place, visitor in enumerate(visitors)))
    finally:
        await asyncio.gather(*(visitor.close() for visitor in visitors))


async def _later(wait_s: float, visitor: Visitor) -> float:
    await asyncio.sleep(wait_s)
    return await visitor.open()


async def _watched(served: Served, visitors: Sequence[Visitor]) -> tuple[list[float], float]:
    """Let the pages tick; return the seconds each tick took, and the cores that the server used."""
    await asyncio.sleep(SETTLE_S)
    for visitor in visitors:
        visitor.ticks_s.clear()
    before_s, started_s = served.cpu_s(), time.perf_counter()
    await asyncio.sleep(WATCHED_S)
    cores = (served.cpu_s() - before_s) / (time.perf_counter() - started_s)
    never = [WATCHED_S for visitor in visitors if not visitor.ticks_s]
    return [*never, *(tick_s for visitor in visitors for tick_s in visitor.ticks_s)], cores


def _say_errors(visitors: Sequence[Visitor]) -> None:
    if said := {error for visitor in visitors for error in visitor.errors}:
        print(f"errors: {said}", file=sys.stderr)


def _is_compiler(process: psutil.Process) -> bool:
    try:
        return COMPILER in process.cmdline()
    except psutil.NoSuchProcess:
        return False


# ------------------------------------------------------------------------------------------- servers


@contextmanager
def serve(root: Path, script: str) -> Iterator[Served]:
    """Serve `script` of a checkout with an empty home; only its store has the results that are shipped."""
    with tempfile.TemporaryDirectory(prefix="gpuexplore-bench-") as home:
        environment = os.environ | {
            "GPUEXPLORE_HOME": home,
            "GPUEXPLORE_SUPERVISOR": "external",
            "PYTHONPATH": str(root),
        }
        environment.pop("OPENBLAS_CORETYPE", None)
        with open_store(database_of(Path(home))) as store, (Path(home) / "server.log").open("wb") as log:
            _fill(store)
            port = free_port()
            command = [sys.executable, "-m", "streamlit", "run", script, "--server.port", str(port)]
            process = subprocess.Popen(command, cwd=root, env=environment, stdout=log, stderr=log)
            try:
                wait_until_served(process, port)
                yield Served(f"http://127.0.0.1:{port}", psutil.Process(process.pid), store, script == PEER)
            finally:
                process.terminate()
                process.wait(30)


def _fill(store: Store) -> None:
    for recording in recordings():
        for experiment in recording.experiments:
            run = recorded_run(run_id_of(recording.name, experiment.operation))
            store.record(run.experiment, OWNER, results=run.results)
    _beat(store)


def _beat(store: Store) -> None:
    store.heartbeat(STAND_IN, state="ready", devices=recordings()[0].provenance.devices)


@asynccontextmanager
async def measuring(store: Store, claim: WorkClaim | None) -> AsyncIterator[None]:
    """Stand in for the measuring process: report it alive, and add a result of the claimed run each second."""
    task = asyncio.create_task(_measure(store, claim))
    try:
        yield
    finally:
        task.cancel()
        if claim:
            store.finish(claim, RunState.CANCELLED)


async def _measure(store: Store, claim: WorkClaim | None) -> None:
    left = list(_made_up(claim.work)) if claim else []
    while True:
        _beat(store)
        if claim and left:
            store.add_result(claim, left.pop(0))
        await asyncio.sleep(BEAT_S)


def submitted(store: Store) -> WorkClaim:
    """Queue a recorded experiment and start it; return the claim."""
    store.submit(_shipped(), OWNER)
    claim = store.claim(STAND_IN.name, ["cpu"])
    assert claim
    return claim


def _shipped() -> Experiment:
    return recordings()[0].experiments[0]


def _made_up(experiment: Experiment) -> list[Result]:
    """Return a result for each case: that of a recorded one, with the case alone replaced."""
    like = recorded_run(run_id_of(recordings()[0].name, "matmul")).results
    measured = [result for result in like if result.measurement]
    return [replace(measured[place % len(measured)], case=case) for place, case in enumerate(experiment.cases())]


# ------------------------------------------------------------------------------------------- printing


def main() -> None:
    """Run the scenarios and print their figures."""
    arguments = _arguments()
    for name in arguments.only or SCENARIOS:
        for root, script in ((arguments.root, "app.py"), (ROOT, PEER)):
            with serve(root, script) as served:
                for figure in asyncio.run(SCENARIOS[name](served)):
                    print(f"{Path(script).stem:9s} {figure}", flush=True)


def _seconds(value: float) -> str:
    return format_seconds(value)


def _plain(value: float) -> str:
    return f"{value:.2f}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=lambda text: text.split(","), help=f"of {', '.join(SCENARIOS)}")
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout to serve")
    return parser.parse_args()


if __name__ == "__main__":
    main()
