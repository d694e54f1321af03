"""What becomes of implementations that cheat, crash or hang, each beside an honest one, by command line and queue.

The command line is the real one in a process of its own for every plant; the queue is a store and a supervisor with
one worker, which all plants share: what one of them leaves behind meets the next. Plants and expectations are in
`tests/measure/evil/catalogue.py`. Ends with 1 where a plant ends otherwise than expected, lacks its flag, takes too
long, costs its neighbours their results, or shows a traceback and did not crash.

    python -m benchmarks.evil [PLANT ...] [--route cli|queue] [--busy LOOPS] [--json]
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.bias import busy_loop
from tests.measure.evil.catalogue import PLANTS, register
from tests.measure.evil.plant import BUILD_S, ROUTES, Plant

register(setattr, dict.__setitem__)

from gpuexplore.cli.output import print_columns  # noqa: E402 what knows the plants is imported after them
from gpuexplore.core.model import Experiment, Options, Result, RunState, Status  # noqa: E402
from gpuexplore.store import Store, open_store  # noqa: E402

PROGRAM = (sys.executable, "-m", "tests.measure.evil.gpuexplore_with_plants")
LOG = "supervisor.log"
TRACEBACK = re.compile(
    r"^Traceback \(most recent call last\)", re.MULTILINE
)  # "... printed: " is before a kernel's own
BUDGET_S = 0.1
LOST_AFTER_S = 180.0
READY_S = 300.0
POLL_S = 0.02
ENDED = (RunState.DONE, RunState.CANCELLED, RunState.FAILED)
HEADING = ("plant", "route", "status", "flags", "seconds", "expected", "beside it", "verdict", "reason")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a plant over one route.

    Attributes:
        status: how it ended; None where its result was lost.
        beside: the statuses of the honest implementations measured with it.
        traceback: whether the command line or the supervisor showed one of its own.
    """

    status: str | None
    flags: tuple[str, ...] = ()
    reason: str = ""
    beside: tuple[str | None, ...] = ()
    seconds: float = 0.0
    traceback: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table."""

    plant: Plant
    route: str
    outcome: Outcome
    complaints: tuple[str, ...] = field(default=())


def complaints_about(plant: Plant, outcome: Outcome) -> Iterator[str]:
    """Yield what is not as expected."""
    expected = [str(status) for status in plant.statuses]
    if outcome.status is None:
        yield "its result was lost"
    elif outcome.status not in expected:
        yield "WRONG, AND OK" if outcome.status == Status.OK else f"not {' or '.join(expected)}"
    if outcome.status == Status.OK and plant.flag and plant.flag not in outcome.flags:
        yield f"not flagged {plant.flag}"
    if outcome.seconds > plant.most_s:
        yield f"over {plant.most_s:g} s"
    if outcome.traceback and outcome.status != Status.CRASHED:  # the last words of a worker that was broken
        yield "a traceback"
    if not plant.damages and set(outcome.beside) != {str(Status.OK)}:
        yield "cost its neighbours their results"


def by_cli(plant: Plant, environment: dict[str, str]) -> Outcome:
    """Return what `gpuexplore run --json` says of a plant."""
    shape = ",".join(f"{axis}={size}" for axis, size in plant.shape.axes)
    names = ",".join((*plant.beside, plant.name))
    arguments = ("run", plant.operation, "--shape", shape, "--dtype", plant.dtype, "--impl", names, "--device", "cpu")
    began_s = time.monotonic()
    try:
        ended = subprocess.run(
            (*PROGRAM, *arguments, "--budget", str(BUDGET_S), "--time-limit", f"{BUILD_S:g}s", "--json", "--no-save"),
            env=environment,
            capture_output=True,
            check=False,
            timeout=LOST_AFTER_S,
        )
    except subprocess.TimeoutExpired:
        return Outcome(None, reason="the command did not end", seconds=LOST_AFTER_S)
    seconds, said = time.monotonic() - began_s, ended.stderr.decode(errors="replace")
    try:
        found = {result["case"]["implementation"]: result for result in json.loads(ended.stdout)["results"]}
    except (ValueError, KeyError):
        return Outcome(
            None,
            reason=f"exit code {ended.returncode}: {said[-300:]}",
            seconds=seconds,
            traceback=bool(TRACEBACK.search(said)),
        )
    own = found.get(plant.name)
    if own is None:
        return Outcome(None, reason=said[-300:], seconds=seconds, traceback=bool(TRACEBACK.search(said)))
    flags = tuple(flag["name"] for flag in own["flags"])
    beside = tuple(found[name]["status"] if name in found else None for name in plant.beside)
    return Outcome(own["status"], flags, own["reason"] or "", beside, seconds, traceback=bool(TRACEBACK.search(said)))


def by_queue(plant: Plant, store: Store, log: Path) -> Outcome:
    """Return what a supervisor stores of a plant, and whether it writes a traceback to `log`."""
    read = len(_text(log))
    names = (*plant.beside, plant.name)
    experiment = Experiment(plant.operation, (plant.shape,), (plant.dtype,), names, options=Options(budget_s=BUDGET_S))
    began_s = time.monotonic()
    run_id = store.submit(experiment, "a sceptic")
    _wait_for_end(store, run_id, LOST_AFTER_S)
    seconds, run = time.monotonic() - began_s, store.load(run_id)
    found = {result.case.implementation: result for result in run.results}
    beside = tuple(_status(found.get(name)) for name in plant.beside)
    own, traceback = found.get(plant.name), bool(TRACEBACK.search(_text(log)[read:]))
    if own is None:
        return Outcome(None, (), run.reason or str(run.state), beside, seconds, traceback)
    flags = tuple(flag.name for flag in own.flags)
    return Outcome(str(own.status), flags, own.reason or "", beside, seconds, traceback)


def _text(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""


def _status(result: Result | None) -> str | None:
    return str(result.status) if result else None


def _wait_for_end(store: Store, run_id: str, patience_s: float) -> None:
    end_s = time.monotonic() + patience_s
    while store.load_summary(run_id).state not in ENDED and time.monotonic() < end_s:
        time.sleep(POLL_S)


@contextmanager
def supervised(home: Path, environment: dict[str, str]) -> Iterator[Store]:
    """Yield a store whose runs a supervisor measures; its worker is warm, and ceilings are measured."""
    url = f"sqlite:///{home}/gpuexplore.sqlite3"
    with open_store(url) as store:
        log = ("--log", str(home / LOG))
        process = subprocess.Popen((*PROGRAM, "supervisor", "--database", url, *log), env=environment)
        try:
            first = Experiment("vector_add", (PLANTS[0].shape,), ("fp32",), ("numpy",))
            _wait_for_end(store, store.submit(first, "a sceptic"), READY_S)
            yield store
        finally:
            process.terminate()
            process.wait()


def measured(plants: Iterable[Plant], routes: Iterable[str], home: Path) -> Iterator[Row]:
    """Yield what becomes of each plant over each route."""
    environment = {
        **os.environ,
        "GPUEXPLORE_HOME": str(home),
        "GPUEXPLORE_LOCKS": str(home / "locks"),
        "GPUEXPLORE_LIMIT_DEVICE_SECONDS_PER_HOUR": "1000000",
    }
    with supervised(home, environment) as store:
        take = {
            "cli": lambda plant: by_cli(plant, environment),
            "queue": lambda plant: by_queue(plant, store, home / LOG),
        }
        for first in take.values():  # an honest one, untimed: it may have a ceiling measured again that it passes
            first(PLANTS[0])
        for plant in plants:
            for route in routes:
                if route in plant.routes:
                    outcome = take[route](plant)
                    yield Row(plant, route, outcome, tuple(complaints_about(plant, outcome)))


def table_row(row: Row) -> tuple[str, ...]:
    """Return a line of the table, in the order of its heading."""
    plant, outcome = row.plant, row.outcome
    expected = "|".join(map(str, plant.statuses)) + (f" +{plant.flag}" if plant.flag else "")
    return (
        plant.name,
        row.route,
        outcome.status or "lost",
        " ".join(outcome.flags),
        f"{outcome.seconds:.1f}",
        f"{expected} <{plant.most_s:g} s",
        " ".join(status or "lost" for status in outcome.beside),
        "; ".join(row.complaints) or "as expected",
        ascii(outcome.reason)[1:-1][:70],
    )


def _print(rows: list[Row], *, as_json: bool) -> None:
    if as_json:
        found = [
            {"plant": row.plant.name, "about": row.plant.about, "route": row.route, **asdict(row.outcome),
             "complaints": row.complaints}
            for row in rows
        ]  # fmt: skip
        print(json.dumps(found, indent=2))
        return
    print_columns([HEADING, *map(table_row, rows)])
    bad = [row for row in rows if row.complaints]
    print(f"\n{len({row.plant.name for row in rows})} plants, {len(rows)} runs, {len(bad)} not as expected")


def main() -> int:
    """Try the plants and print the table; return 1 where one is not as expected."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = {plant.name: plant for plant in PLANTS}
    parser.add_argument("plants", nargs="*", metavar="PLANT", help="default: all")
    parser.add_argument("--route", choices=ROUTES, help="default: both")
    parser.add_argument("--busy", type=int, default=0, metavar="LOOPS", help="that compute beside it; default: 0")
    parser.add_argument("--json", action="store_true", help="print one JSON array")
    chosen = parser.parse_args()
    plants = [known[name] for name in chosen.plants] or PLANTS
    rows: list[Row] = []
    with (
        tempfile.TemporaryDirectory(prefix="gpuexplore-evil-", ignore_cleanup_errors=True) as folder,
        suppress(KeyboardInterrupt),
        ExitStack() as stack,
    ):
        for _ in range(chosen.busy):
            stack.enter_context(busy_loop())
        for row in measured(plants, [chosen.route] if chosen.route else ROUTES, Path(folder)):
            rows.append(row)
            print(*table_row(row), sep="  ", file=sys.stderr, flush=True)
    _print(rows, as_json=chosen.json)
    return int(any(row.complaints for row in rows))


if __name__ == "__main__":
    sys.exit(main())
