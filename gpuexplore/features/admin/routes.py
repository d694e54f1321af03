"""Metrics that Prometheus and its like read at `/metrics`: off, public, or for who has the token of a setting.

They are text in the form of OpenMetrics 1.0:
https://github.com/prometheus/OpenMetrics/blob/main/specification/OpenMetrics.md
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from secrets import compare_digest
from typing import Literal

from sqlalchemy import func, select, text
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

import gpuexplore
from gpuexplore.core.errors import InvalidInput, StoreUnavailable
from gpuexplore.core.model import RunState
from gpuexplore.jobs.server_settings import metrics
from gpuexplore.store.database import Database
from gpuexplore.store.leases import Supervisor, leased
from gpuexplore.store.sqlite_connection import size_of
from gpuexplore.store.tables import DEVICE_USE, RUNS
from gpuexplore.store.turns import QUEUED
from gpuexplore.store.upgrade import free_bytes
from gpuexplore.ui.session import PAGE_ERRORS, store
from gpuexplore.ui.shared import Shared, moment
from gpuexplore.ui.undocumented import connected_sessions

Samples = Iterable[tuple[Mapping[str, str], float]]
SUFFIXES = {"gauge": "", "counter": "_total", "info": "_info"}
ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


def exposition(families: Iterable[Sequence[str]]) -> str:
    """Return the text of all metrics, each the lines that `metric` returns."""
    return "\n".join([*(line for family in families for line in family), "# EOF", ""])


def metric(
    name: str, kind: Literal["gauge", "counter", "info"], about: str, samples: Samples, *, unit: str = ""
) -> Sequence[str]:
    """Return the lines of one metric.

    Args:
        name: without the suffix of its kind; ends in its unit where it has one.
        kind: what its values are: a counter never falls while the process lives.
        about: a sentence.
        samples: values by labels.
        unit: in the base form, `seconds` or `bytes`.
    """
    head = [f"# TYPE {name} {kind}"]
    if unit:
        head.append(f"# UNIT {name} {unit}")
    head.append(f"# HELP {name} {about.translate(ESCAPES)}")
    return [*head, *(f"{name}{SUFFIXES[kind]}{_labels(labels)} {value:.15g}" for labels, value in samples)]


def _labels(labels: Mapping[str, str]) -> str:
    listed = ",".join(f'{name}="{value.translate(ESCAPES)}"' for name, value in labels.items())
    return f"{{{listed}}}" if labels else ""


@dataclass(frozen=True, slots=True)
class Figures:
    """What one look at the database found.

    Attributes:
        waiting: how many runs wait, by the devices that they ask for.
        oldest_s: how long the first of these has waited.
        runs: how many there are, by state; those that were pruned are not.
        used_s: seconds that devices worked, by the devices that runs asked for.
        supervisors: those heard of within a lease.
        database_bytes: of the database.
        free_bytes: of its disk; None on a server, whose disk is its own.
    """

    waiting: dict[str, int]
    oldest_s: dict[str, float]
    runs: dict[str, int]
    used_s: dict[str, float]
    supervisors: tuple[Supervisor, ...]
    database_bytes: int
    free_bytes: int | None


def figures(database: Database) -> Figures:
    """Return what is to be watched.

    Raises:
        StoreUnavailable: the database cannot be used now.
    """
    file = Path(str(database.engine.url.database)) if database.engine.dialect.name == "sqlite" else None
    waiting = select(RUNS.c.devices, func.count().label("runs"), func.min(RUNS.c.created_utc).label("first"))
    by_state = select(RUNS.c.state, func.count().label("runs")).group_by(RUNS.c.state)
    now = datetime.fromisoformat(database.now())
    with database.reading() as connection:
        queues = connection.execute(waiting.where(QUEUED).group_by(RUNS.c.devices).order_by(RUNS.c.devices)).all()
        return Figures(
            waiting={row.devices: row.runs for row in queues},
            oldest_s={  # none where a clock was set back meanwhile
                row.devices: max(0.0, (now - datetime.fromisoformat(row.first)).total_seconds()) for row in queues
            },
            runs={row.state.value: row.runs for row in connection.execute(by_state)},
            used_s={row.devices: row.device_s for row in connection.execute(select(DEVICE_USE))},
            supervisors=leased(connection),
            database_bytes=size_of(file)
            if file
            else int(connection.scalar(text("SELECT pg_database_size(current_database())")) or 0),
            free_bytes=free_bytes(file) if file else None,
        )


LOOKS = 4  # for so many one look counts: a second
FIGURES: Shared[Figures | None] = Shared(1)


def _families(found: Figures | None) -> list[Sequence[str]]:
    """Return every metric; those of the database where it can be used."""
    up: Samples = (({}, float(found is not None)),)
    return [
        *_of_process(),
        metric("gpuexplore_database_up", "gauge", "Whether the database can be used.", up),
        *(_of_database(found) if found else ()),
    ]


def _of_process() -> list[Sequence[str]]:
    connected = connected_sessions()
    sessions: Samples = () if connected is None else (({}, float(connected)),)
    pages = metric("gpuexplore_sessions", "gauge", "Pages that are connected to this server.", sessions)
    return [
        metric("gpuexplore_build", "info", "What serves.", (({"version": gpuexplore.__version__}, 1.0),)),
        metric(
            "gpuexplore_page_errors",
            "counter",
            "Errors of pages that nobody expected, since this server started.",
            (({}, float(len(PAGE_ERRORS))),),
        ),
        *([pages] if sessions else []),
    ]


def _of_database(found: Figures) -> list[Sequence[str]]:
    free: Samples = () if found.free_bytes is None else (({}, float(found.free_bytes)),)
    disk = [metric("gpuexplore_disk_free_bytes", "gauge", "What is free of that disk.", free, unit="bytes")]
    return [
        metric(
            "gpuexplore_queue_runs",
            "gauge",
            "Runs that wait, by the devices they ask for.",
            tuple(({"devices": devices}, float(runs)) for devices, runs in found.waiting.items()),
        ),
        metric(
            "gpuexplore_queue_oldest_wait_seconds",
            "gauge",
            "How long the run that came first has waited.",
            tuple(({"devices": devices}, oldest_s) for devices, oldest_s in found.oldest_s.items()),
            unit="seconds",
        ),
        metric(
            "gpuexplore_runs",
            "gauge",
            "Runs in the database, by state.",
            tuple(({"state": state.value}, float(found.runs.get(state.value, 0))) for state in RunState),
        ),
        metric(
            "gpuexplore_device_use_seconds",
            "counter",
            "How long devices worked for runs, by the devices these asked for.",
            tuple(({"devices": devices}, used_s) for devices, used_s in sorted(found.used_s.items())),
            unit="seconds",
        ),
        metric(
            "gpuexplore_supervisor_age_seconds",
            "gauge",
            "How long ago a supervisor reported itself.",
            tuple(({"host": each.host, "supervisor": each.name}, each.age_s) for each in found.supervisors),
            unit="seconds",
        ),
        metric(
            "gpuexplore_database_size_bytes",
            "gauge",
            "What the database takes of its disk.",
            (({}, float(found.database_bytes)),),
            unit="bytes",
        ),
        *(disk if free else ()),
    ]


def _show_metrics(request: Request) -> Response:
    """Answer with the metrics, or as the setting says."""
    try:
        allowed = metrics()
    except InvalidInput as error:
        return PlainTextResponse(f"{error}\n", status_code=503)
    if allowed is None:
        return PlainTextResponse("Not found\n", status_code=404)
    if allowed != "on" and not _shows(request, allowed):
        challenge = {"www-authenticate": "Bearer"}
        return PlainTextResponse("Show the token of GPUEXPLORE_METRICS\n", status_code=401, headers=challenge)
    return Response(
        exposition(_families(FIGURES.get(moment(LOOKS), _look))),
        headers={"content-type": "application/openmetrics-text; version=1.0.0; charset=utf-8"},
    )


def _look() -> Figures | None:
    try:
        return figures(store())
    except StoreUnavailable:
        return None


def _shows(request: Request, token: str) -> bool:
    kind, _, shown = request.headers.get("authorization", "").partition(" ")
    return kind.casefold() == "bearer" and compare_digest(shown.strip().encode(), token.encode())


ROUTES = (Route("/metrics", _show_metrics),)
