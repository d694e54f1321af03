"""A class of a hundred in one room, compared with the same server without visitors.

Each of them is a browser without a screen (`benchmarks.visitor`) that fills in the form of the door, waits on its page
and guesses; one more shows the wall, and a supervisor measures here. Browsers take cores of the same machine. It
asserts nothing.

    python -m benchmarks.room [--people N] [--passes N]
"""

import argparse
import asyncio
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles

import psutil
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

from benchmarks.visitor import LONGEST_S, Visitor
from gpuexplore.core.model import Experiment, Options, Run, Shape
from gpuexplore.core.units import format_percent, format_seconds
from gpuexplore.rooms import Room
from gpuexplore.store import Store, open_store
from scripts.app_server import ROOT, database_of, free_port, wait_until_served

LEADER = "the leader of the benchmark"
WATCHED_S, SETTLE_S = 20.0, 10.0
ANSWERS_S = 20.0  # within which all answer, evenly
GIVE_UP_S = 120.0
STATES = re.compile(r"\*\*(\d+) of (\d+) done\*\*, (\d+) begun")
GUESS = {"operation": "matmul", "size": "512", "dtype": "fp32", "implementation": "torch"}
SIZES = tuple(Shape.of(m=size, k=size, n=size) for size in (256, 512, 1024))
MEASURED = Experiment("matmul", SIZES, ("fp32",), ("numpy", "torch"), ("cpu",), Options(budget_s=0.5))


@dataclass(slots=True)
class Participant(Visitor):
    """An open page whose fields can be filled in.

    Attributes:
        seen_begun: how many had begun, by when the wall said so.
    """

    seen_begun: list[tuple[float, int]] = field(default_factory=list)
    _fields: dict[str, tuple[str, str]] = field(default_factory=dict)  # id and fragment, by label
    _page_hash: str = ""
    _asked_for: set[str] = field(default_factory=set)
    _there: asyncio.Event = field(default_factory=asyncio.Event)

    def _take(self, message: ForwardMsg) -> None:
        if message.WhichOneof("type") == "delta" and message.delta.WhichOneof("type") == "new_element":
            self._note(message)
        if message.WhichOneof("type") == "navigation":
            self._page_hash = message.navigation.page_script_hash
        Visitor._take(self, message)

    def _note(self, message: ForwardMsg) -> None:
        element, fragment = message.delta.new_element, message.delta.fragment_id
        kind = element.WhichOneof("type")
        if kind in ("text_input", "button"):
            found = getattr(element, kind)
            self._fields[found.label] = found.id, fragment
            if self._fields.keys() >= self._asked_for:
                self._there.set()
        elif kind == "markdown" and (states := STATES.search(element.markdown.body)):
            self.seen_begun.append((time.perf_counter(), int(states[1]) + int(states[3])))

    async def until_there(self, *labels: str) -> None:
        """Wait until the page has these fields and buttons."""
        self._asked_for, self._there = set(labels), asyncio.Event()
        if not self._fields.keys() >= self._asked_for:
            await asyncio.wait_for(self._there.wait(), LONGEST_S)

    async def fill_in(self, label: str, text: str, button: str) -> None:
        """Type into a field and press the button of its form."""
        await self._send(button, WidgetState(id=self._fields[label][0], string_value=text))

    async def press(self, button: str) -> None:
        """Press a button."""
        await self._send(button)

    async def _send(self, button: str, *typed: WidgetState) -> None:
        message = BackMsg()
        client, (pressed, fragment) = message.rerun_script, self._fields[button]
        client.query_string, client.fragment_id = self.query, fragment
        client.cached_message_hashes.extend(self._cached)
        client.page_script_hash = self._page_hash
        client.widget_states.widgets.extend([*typed, WidgetState(id=pressed, trigger_value=True)])
        assert self._socket
        await self._socket.send(message.SerializeToString())


@dataclass(frozen=True, slots=True)
class Served:
    """A server that is up, its process, and the store behind it."""

    address: str
    process: psutil.Process
    store: Store

    def cpu_s(self) -> float:
        """Return the CPU seconds of the web server alone."""
        times = self.process.cpu_times()
        return times.user + times.system


async def joins(served: Served, room: Room, people: Sequence[Participant]) -> float:
    """Let all open the room at once and join; return the seconds until the last one is in."""
    started_s = time.perf_counter()

    async def join(place: int, person: Participant) -> None:
        await person.open()
        await person.until_there("Your name", "Join")
        await person.fill_in("Your name", f"Person {place}", "Join")
        await person.until_there("Rename")

    await asyncio.gather(*(join(place, person) for place, person in enumerate(people)))
    assert len(served.store.participants(room)) == len(people)
    return time.perf_counter() - started_s


async def answers(served: Served, room: Room, people: Sequence[Participant], wall: Participant) -> list[float]:
    """Let one after the other guess; return the seconds until each is on the wall."""
    served.store.add_task(LEADER, room, kind="guess", settings=GUESS)
    await asyncio.gather(*(person.until_there("Your guess", "Guess") for person in people))
    sent_s = []
    for place, person in enumerate(people):
        sent_s.append(time.perf_counter())
        await person.fill_in("Your guess", f"{place % 9 + 1} ms", "Guess")
        await asyncio.sleep(ANSWERS_S / len(people))
    until_s = time.perf_counter() + GIVE_UP_S
    while (not wall.seen_begun or wall.seen_begun[-1][1] < len(people)) and time.perf_counter() < until_s:
        await asyncio.sleep(0.1)
    seen = wall.seen_begun
    return [
        next((when_s for when_s, count in seen if count >= place), until_s) - begun_s
        for place, begun_s in enumerate(sent_s, start=1)
    ]


async def ticks(served: Served, people: Sequence[Participant]) -> tuple[list[float], float]:
    """Let the pages tick; return the seconds each tick took, and the cores that the server used."""
    await asyncio.sleep(SETTLE_S)
    for person in people:
        person.ticks_s.clear()
    before_s, started_s = served.cpu_s(), time.perf_counter()
    await asyncio.sleep(WATCHED_S)
    cores = (served.cpu_s() - before_s) / (time.perf_counter() - started_s)
    never = [WATCHED_S for person in people if not person.ticks_s]
    return [*never, *(tick_s for person in people for tick_s in person.ticks_s)], cores


async def measured(store: Store, owner: str) -> Run:
    """Measure the experiment and return the run."""
    run_id = await asyncio.to_thread(store.submit, MEASURED, owner)
    until_s = time.perf_counter() + GIVE_UP_S
    while (run := await asyncio.to_thread(store.load, run_id)).active and time.perf_counter() < until_s:
        await asyncio.sleep(0.25)
    return run


def medians(runs: Sequence[Run]) -> list[float]:
    """Return the median time of each case over several runs."""
    return [
        median(run.results[place].measurement.median_s for run in runs if run.results[place].measurement)
        for place in range(len(MEASURED.cases()))
    ]


async def room_of(served: Served, count: int, passes: int) -> None:
    """Print every figure."""
    await measured(served.store, LEADER)  # the first one also compiles and calibrates
    room, _ = served.store.open_room(LEADER, "A class", 4)
    query = f"room={room.code}"
    alone = [await measured(served.store, LEADER) for _ in range(passes)]

    people = [Participant(served.address, "rooms", query, f"person{place}") for place in range(count)]
    say(f"{count} people: all have joined", await joins(served, room, people), 10.0)
    wall = Participant(served.address, "rooms", f"{query}&view=wall", LEADER)
    await wall.open()
    delays_s = await answers(served, room, people, wall)
    say("an answer on the wall: p50", median(delays_s), None)
    say("an answer on the wall: p95", quantiles(delays_s, n=20)[18], 2.0)
    ticks_s, cores = await ticks(served, people)
    say("ticks of people: p50", median(ticks_s), 0.1)
    say("ticks of people: p95", quantiles(ticks_s, n=20)[18], None)
    print(f"{'cores of the web server, all pages open':44s} {cores:.2f}")
    together = [await measured(served.store, LEADER) for _ in range(passes)]
    errors = {error for visitor in (*people, wall) for error in visitor.errors}
    await asyncio.gather(*(visitor.close() for visitor in people))
    _, cores = await ticks(served, [wall])
    print(f"{'cores of the web server, the wall alone':44s} {cores:.2f}   aim 0.10")
    await wall.close()
    alone += [await measured(served.store, LEADER) for _ in range(passes)]
    ratios = [there / nobody for there, nobody in zip(medians(together), medians(alone), strict=True)]
    print(f"{'medians with visitors over those without':44s} {median(ratios):.3f}   aim 1.02")
    for case, ratio in zip(MEASURED.cases(), ratios, strict=True):
        print(f"  {case.implementation:10s} {case.shape!s:24s} {format_percent(ratio - 1)}")
    if errors:
        print(f"errors: {errors}", file=sys.stderr)


def say(what: str, seconds: float, aim_s: float | None) -> None:
    """Print a figure beside its aim."""
    print(
        f"{what:44s} {format_seconds(seconds)}{'' if aim_s is None else f'   aim {format_seconds(aim_s)}'}", flush=True
    )


@contextmanager
def serve() -> Iterator[Served]:
    """Serve the app with an empty home, and a supervisor of its own."""
    with tempfile.TemporaryDirectory(prefix="gpuexplore-bench-") as home:
        environment = os.environ | {
            "GPUEXPLORE_HOME": home,
            "PYTHONPATH": str(ROOT),
            "GPUEXPLORE_SUPERVISOR": "external",
        }
        environment.pop("OPENBLAS_CORETYPE", None)
        with open_store(database_of(Path(home))) as store, (Path(home) / "server.log").open("wb") as log:
            port = free_port()
            commands = (
                [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)],
                [sys.executable, "-m", "gpuexplore.jobs.supervisor"],
            )
            started = [subprocess.Popen(each, cwd=ROOT, env=environment, stdout=log, stderr=log) for each in commands]
            try:
                wait_until_served(started[0], port)
                yield Served(f"http://127.0.0.1:{port}", psutil.Process(started[0].pid), store)
            finally:
                for process in started:
                    process.terminate()
                for process in started:
                    process.wait(60)


def main() -> None:
    """Serve, let the class in, and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=100, help="how many there are in the room (default: %(default)s)")
    parser.add_argument("--passes", type=int, default=3, help="runs with and without them (default: %(default)s)")
    arguments = parser.parse_args()
    with serve() as served:
        asyncio.run(room_of(served, arguments.people, arguments.passes))


if __name__ == "__main__":
    main()
