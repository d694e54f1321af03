"""How long the store takes to answer with a long history in it: every question that a page, a command or the API asks.

    python -m benchmarks.history [--runs N] [--asked N] [--url URL]

It fills an empty database with runs of ten results each, made of a recorded one (100,000 runs and a million results
take about 2 GB), asks each question with other values each time, in turns, and prints the median and the 95th
percentile beside the same of a query that reads nothing. The aim is 150 ms for each. It asserts nothing.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from sqlalchemy import JSON, Dialect, Table, TypeDecorator, insert, select, text
from sqlalchemy.sql.expression import TableClause, column, table

from gpuexplore.core.model import Device, Experiment, Result, RunState, RunSummary, Shape, Status
from gpuexplore.core.naming import default_title
from gpuexplore.core.serialization import encode
from gpuexplore.jobs.run_sources import listed_with_summaries
from gpuexplore.recorded import recordings
from gpuexplore.store import Description, Store, Wanted, open_store
from gpuexplore.store.run_states import searched
from gpuexplore.store.tables import ENVIRONMENTS, RESULTS, RUN_TAGS, RUNS
from gpuexplore.store.tolerant_decode import digest_of, row_of, take_out

SEED = 10
AIM_S = 0.150
BATCH = 2000
OWNERS = ("the lab", *(f"visitor {number}" for number in range(400)))  # the first one has half of the runs
OPERATIONS = ("matmul", "softmax", "vector_add", "linear")
TAGS = {"everyday": 0.5, "weekly": 0.01, "rare": 0.0001}  # by the share of runs that have them
EPOCH = datetime(2025, 1, 1, tzinfo=UTC)


class Encoded(TypeDecorator[str]):
    """JSON that is given as text."""

    impl = JSON
    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> Callable[[str], str]:  # noqa: ARG002 - SQLAlchemy's signature
        """Return what makes a value of a parameter: it stays as it is."""
        return lambda value: value


@dataclass(frozen=True, slots=True)
class Kind:
    """Runs of one experiment, encoded once."""

    experiment: Experiment
    encoded: str
    payloads: Sequence[str]
    digest: str


def main(arguments: Sequence[str] | None = None) -> None:
    """Fill a database and print how long each question takes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100_000, help="each has ten results (default: %(default)s)")
    parser.add_argument("--asked", type=int, default=60, help="times each question is asked (default: %(default)s)")
    parser.add_argument("--url", help="an empty database; without one a file of SQLite that goes with the benchmark")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, open_store(given.url or f"sqlite:///{folder}/history.db") as store:
        began = time.monotonic()
        ids = fill(store, given.runs)
        print(f"{len(ids):,} runs, {10 * len(ids):,} results in {time.monotonic() - began:.0f} s; aim {AIM_S:.3f} s")
        report(measure(questions(store, ids), given.asked))


def fill(store: Store, count: int) -> list[str]:
    """Write `count` runs of ten results and return their ids."""
    order, kinds = random.Random(SEED), [_kind(operation) for operation in OPERATIONS]
    runs, results = _raw(RUNS, "experiment", "summary"), _raw(RESULTS, "payload")
    with store.writing() as connection:
        result = _template()
        _, environment = take_out(encode(result))
        assert environment is not None, "the recorded result names its device"
        connection.execute(insert(ENVIRONMENTS).values(**row_of(digest_of(environment), environment)))
    ids = [f"h{number:09d}" for number in range(count)]
    for start in range(0, count, BATCH):
        numbers = range(start, min(start + BATCH, count))
        chosen = {number: order.choice(kinds) for number in numbers}
        with store.writing() as connection:
            connection.execute(
                insert(runs), [_run(ids[number], number, kind, order) for number, kind in chosen.items()]
            )
            connection.execute(
                insert(results),
                [
                    {"run_id": ids[number], "case_index": index, "payload": payload, "environment": kind.digest}
                    for number, kind in chosen.items()
                    for index, payload in enumerate(kind.payloads)
                ],
            )
            tags = [
                {"tag": tag, "number": number + 1}
                for number in numbers
                for tag, share in TAGS.items()
                if order.random() < share
            ]
            if tags:
                connection.execute(insert(RUN_TAGS), tags)
    with store.writing() as connection:
        if store.engine.dialect.name == "postgresql":  # the numbers were given, and not drawn from its sequence
            connection.execute(text("SELECT setval(pg_get_serial_sequence('runs', 'number'), max(number)) FROM runs"))
            connection.execute(text("ANALYZE"))  # as its autovacuum does; nothing in the app does it to SQLite
    return ids


def questions(store: Store, ids: Sequence[str]) -> Mapping[str, Callable[[random.Random], object]]:
    """Return what is asked of the store, by what asks it; each with values of its own at each turn."""
    device = _device()
    experiment = _kind("matmul").experiment
    recently = (EPOCH + timedelta(minutes=len(ids) // 2)).isoformat()

    def page(**wanted: str) -> Callable[[random.Random], object]:
        return lambda order: listed_with_summaries(
            store, Wanted(**wanted), before=order.choice([None, order.randint(1, len(ids))])
        )

    return {
        "nothing: SELECT 1": lambda _: _one(store),
        "Runs: newest": lambda _: listed_with_summaries(store),
        "Runs: a page anywhere": page(),
        "Runs: mine, half of all": page(owner=OWNERS[0]),
        "Runs: mine, few": lambda order: listed_with_summaries(store, Wanted(owner=order.choice(OWNERS[1:]))),
        "Runs: an operation": page(operation="softmax"),
        "Runs: a device": page(device=device.name),
        "Runs: a tag of half of all": page(tag="everyday"),
        "Runs: a rare tag": page(tag="rare"),
        "Runs: a rare tag, mine, a word": page(tag="rare", owner=OWNERS[0], text="matmul"),
        "Runs: words found": lambda order: listed_with_summaries(store, Wanted(text=f"matmul {order.randint(10, 99)}")),
        "Runs: words found once": lambda order: listed_with_summaries(store, Wanted(text=order.choice(ids))),
        "Runs: words not there": lambda order: listed_with_summaries(store, Wanted(text=f"zzz{order.random()}")),
        "Runs: mine, words not there": lambda order: listed_with_summaries(
            store, Wanted(owner=OWNERS[0], text=f"zzz{order.random()}")
        ),
        "Runs: tags": lambda _: store.tags_in_use(),
        "Runs: devices": lambda _: store.device_names(),
        "a run with its results": lambda order: store.load(order.choice(ids)),
        "a run without": lambda order: store.load_summary(order.choice(ids)),
        "renaming": lambda order: store.describe(
            order.choice(ids), "", Description(title=f"{order.random()}"), admin=True
        ),
        "tagging": lambda order: store.describe(
            order.choice(ids), "", Description(tags=f"{order.randint(1, 9)}"), admin=True
        ),
        "history of an owner": lambda order: store.history(order.choice(OWNERS), limit=5),
        "what a device did before": lambda _: store.measured_results(device),
        "the same of one owner": lambda order: store.measured_results(device, owner=order.choice(OWNERS)),
        "the newest run alike": lambda _: store.newest_alike(experiment, recently),
        "asking for what another asked for": lambda order: store.ask(experiment, order.choice(OWNERS)),
        "newest result": lambda _: store.newest_result(),
        "Queue: running": lambda _: (store.running(), store.running_activities()),
        "Queue: waiting": lambda _: (store.waiting(), store.queue_length()),
        "a run's place": lambda order: store.position(order.choice(ids)),
        "submitting": lambda order: store.submit(experiment, order.choice(OWNERS)),
        "claiming and finishing": lambda _: _claim(store),
    }


def measure(asked: Mapping[str, Callable[[random.Random], object]], times: int) -> Mapping[str, list[float]]:
    """Return the seconds of each question, asked `times` times in turns, after once that does not count."""
    found: Mapping[str, list[float]] = {name: [] for name in asked}
    order = random.Random(SEED)
    for turn in range(times + 1):
        for name in order.sample(list(asked), len(asked)):
            began = time.perf_counter()
            asked[name](order)
            if turn:
                found[name].append(time.perf_counter() - began)
    return found


def report(found: Mapping[str, list[float]]) -> None:
    """Print the median and the 95th percentile of each question."""
    print(f"{'question':34}{'median, ms':>12}{'p95, ms':>10}")
    for name, times in found.items():
        ordered = sorted(times)
        slow = ordered[int(0.95 * (len(ordered) - 1))]
        print(
            f"{name:34}{1e3 * ordered[len(ordered) // 2]:12.1f}{1e3 * slow:10.1f}{'' if slow <= AIM_S else '  above'}"
        )


def _kind(operation: str) -> Kind:
    axes = {"matmul": ("m", "k", "n"), "softmax": ("m", "n"), "vector_add": ("n",), "linear": ("b", "d", "k")}[
        operation
    ]
    shapes = tuple(Shape(tuple((axis, size) for axis in axes)) for size in (64, 128, 256, 512, 1024))
    experiment = Experiment(operation, shapes, ("fp32",), ("numpy", "torch"))
    template = _template()
    results = [replace(template, case=case) for case in experiment.cases()]
    _, environment = take_out(encode(results[0]))
    assert environment is not None, "the recorded result names its device"
    payloads = [json.dumps(take_out(encode(result))[0]) for result in results]
    return Kind(experiment, json.dumps(encode(experiment)), payloads, digest_of(environment))


def _template() -> Result:
    """Return a recorded result of a CPU."""
    return next(
        result
        for recording in recordings()
        for result in recording.results
        if result.status is Status.OK and result.case.device == "cpu"
    )


def _device() -> Device:
    environment = _template().environment
    assert environment is not None, "the recorded result names its device"
    return environment.device


def _run(run_id: str, number: int, kind: Kind, order: random.Random) -> dict[str, object]:
    experiment, when = kind.experiment, (EPOCH + timedelta(minutes=number)).isoformat(timespec="microseconds")
    title, device = f"{default_title(experiment)} {order.randint(0, 10_000)}", _NAME
    summary = RunSummary("torch in fp32, 1,024 × 1,024 × 1,024", 1e11, "FLOP/s", 0.5, "peak", "clean", "0 of 10")
    return {
        "number": number + 1,
        "id": run_id,
        "owner": OWNERS[0] if order.random() < 0.5 else order.choice(OWNERS[1:]),
        "experiment": kind.encoded,
        "total": 10,
        "state": RunState.DONE.value,
        "attempt": 1,
        "cancel_requested": False,
        "created_utc": when,
        "started_utc": when,
        "finished_utc": when,
        "operation": experiment.operation,
        "title": title,
        "device_names": device,
        "words": searched(title, run_id, device),
        "summary": json.dumps(encode(summary)),
    }


def _raw(of: Table, *encoded: str) -> TableClause:
    """Return a table to which JSON is given as text, for it is the same in most rows."""
    return table(of.name, *(column(each.name, Encoded() if each.name in encoded else each.type) for each in of.columns))


def _claim(store: Store) -> None:
    claim = store.claim("benchmark", {"cpu"})
    if claim is not None:
        store.finish(claim, RunState.DONE)


def _one(store: Store) -> object:
    with store.reading() as connection:
        return connection.scalar(select(1))


_NAME = _device().title


if __name__ == "__main__":
    sys.exit(main())
