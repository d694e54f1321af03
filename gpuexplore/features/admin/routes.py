"""Metrics for Prometheus and similar monitors at `/metrics`: off, public, or protected by the token of a setting.

They are text in the form of OpenMetrics 1.0:
https://github.com/prometheus/OpenMetrics/blob/main/specification/OpenMetrics.md
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from secrets import compare_digest
from typing import Literal

from sqlalchemy import func, select, text
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

import gpuexplore
from gpuexplore.core import InvalidInput, RunState, StoreUnavailable
from gpuexplore.jobs.server_settings import metrics
from gpuexplore.store import QUEUED, Database, free_bytes, leased, size_of
from gpuexplore.store.tables import DEVICE_USE, RUNS
from gpuexplore.ui.session import PAGE_ERRORS, store
from gpuexplore.ui.shared import Shared, moment
from gpuexplore.ui.undocumented import connected_sessions

Samples = Iterable[tuple[Mapping[str, str], float]]
ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


def _exposition(families: Iterable[Sequence[str]]) -> str:
    """Return the text of all metrics, each the lines that `_metric` returns."""
    return "\n".join([*(line for family in families for line in family), "# EOF", ""])


def _metric(
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
    suffixes = {"gauge": "", "counter": "_total", "info": "_info"}
    return [*head, *(f"{name}{suffixes[kind]}{_labels(labels)} {value:.15g}" for labels, value in samples)]


def _labels(labels: Mapping[str, str]) -> str:
    listed = ",".join(f'{name}="{value.translate(ESCAPES)}"' for name, value in labels.items())
    return f"{{{listed}}}" if labels else ""


def _figures(database: Database) -> list[Sequence[str]]:
    """Return the metrics of the database, of one look at it.

    Raises:
        StoreUnavailable: the database cannot be used now.
    """
    file = Path(str(database.engine.url.database)) if database.engine.dialect.name == "sqlite" else None
    waiting = select(RUNS.c.devices, func.count().label("runs"), func.min(RUNS.c.created_utc).label("first"))
    now = datetime.fromisoformat(database.now())
    with database.reading() as connection:
        queues = connection.execute(waiting.where(QUEUED).group_by(RUNS.c.devices).order_by(RUNS.c.devices)).all()
        by_state = select(RUNS.c.state, func.count().label("runs")).group_by(RUNS.c.state)
        states = {row.state: row.runs for row in connection.execute(by_state)}
        uses = connection.execute(select(DEVICE_USE).order_by(DEVICE_USE.c.devices)).all()
        supervisors = leased(connection)
        database_bytes = (
            size_of(file) if file else connection.scalar(text("SELECT pg_database_size(current_database())")) or 0
        )
    waits_s = [(row.devices, (now - datetime.fromisoformat(row.first)).total_seconds()) for row in queues]
    found = [
        _metric(
            "gpuexplore_queue_runs",
            "gauge",
            "Queued runs, by requested devices.",
            [({"devices": row.devices}, float(row.runs)) for row in queues],
        ),
        _metric(
            "gpuexplore_queue_oldest_wait_seconds",
            "gauge",
            "Waiting time of the oldest queued run.",
            # 0 where a clock was set back meanwhile
            [({"devices": devices}, max(0.0, wait_s)) for devices, wait_s in waits_s],
            unit="seconds",
        ),
        _metric(
            "gpuexplore_runs",
            "gauge",
            "Runs in the database, by state.",
            [({"state": state.value}, float(states.get(state, 0))) for state in RunState],
        ),
        _metric(
            "gpuexplore_device_use_seconds",
            "counter",
            "Time that devices spent on runs, by requested devices.",
            [({"devices": row.devices}, row.device_s) for row in uses],
            unit="seconds",
        ),
        _metric(
            "gpuexplore_supervisor_age_seconds",
            "gauge",
            "Time since a supervisor's last heartbeat.",
            [({"host": each.host, "supervisor": each.name}, each.age_s) for each in supervisors],
            unit="seconds",
        ),
        _metric(
            "gpuexplore_database_size_bytes",
            "gauge",
            "Size of the database on its disk.",
            [({}, float(database_bytes))],
            unit="bytes",
        ),
    ]
    if file:
        free: Samples = [({}, float(free_bytes(file)))]
        found.append(
            _metric("gpuexplore_disk_free_bytes", "gauge", "Free space on the database's disk.", free, unit="bytes")
        )
    return found


FIGURES: Shared[list[Sequence[str]] | None] = Shared(1)


def _families(found: list[Sequence[str]] | None) -> list[Sequence[str]]:
    """Return every metric; those of the database where it can be used."""
    connected = connected_sessions()
    up: Samples = [({}, float(found is not None))]
    build: Samples = [({"version": gpuexplore.__version__}, 1.0)]
    errors: Samples = [({}, float(len(PAGE_ERRORS)))]
    families = [
        _metric("gpuexplore_build", "info", "Version of this server.", build),
        _metric(
            "gpuexplore_page_errors",
            "counter",
            "Unexpected errors of pages since this server started.",
            errors,
        ),
    ]
    if connected is not None:
        sessions: Samples = [({}, float(connected))]
        families.append(_metric("gpuexplore_sessions", "gauge", "Browser pages connected to this server.", sessions))
    families.append(_metric("gpuexplore_database_up", "gauge", "1 if the database can be used, else 0.", up))
    return families + (found or [])


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
    a_second = moment(4)  # in which the database is read once, however often metrics are asked for
    return Response(
        _exposition(_families(FIGURES.get(a_second, _look))),
        headers={"content-type": "application/openmetrics-text; version=1.0.0; charset=utf-8"},
    )


def _look() -> list[Sequence[str]] | None:
    try:
        return _figures(store())
    except StoreUnavailable:
        return None


def _shows(request: Request, token: str) -> bool:
    kind, _, shown = request.headers.get("authorization", "").partition(" ")
    return kind.casefold() == "bearer" and compare_digest(shown.strip().encode(), token.encode())


ROUTES = (Route("/metrics", _show_metrics),)
