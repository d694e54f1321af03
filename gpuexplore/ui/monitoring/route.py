"""Metrics at `/metrics`: switched off, public, or for requests with the token of a setting."""

from secrets import compare_digest

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

import gpuexplore
from gpuexplore.errors import InvalidInput, StoreUnavailable
from gpuexplore.jobs.server_settings import metrics
from gpuexplore.model import RunState
from gpuexplore.store.figures import Figures, figures
from gpuexplore.ui.monitoring.openmetrics import CONTENT_TYPE, Family, exposition
from gpuexplore.ui.monitoring.process import errors
from gpuexplore.ui.session import store
from gpuexplore.ui.shared import Shared, moment
from gpuexplore.ui.undocumented import connected_sessions

LOOKS = 4  # for so many one look counts: a second
FIGURES: Shared[Figures | None] = Shared(1)
ANYBODY = "on"


def _families(found: Figures | None) -> list[Family]:
    """Return every metric; those of the database where it can be used."""
    up = Family(
        "gpuexplore_database_up", "gauge", "Whether the database can be used.", (({}, float(found is not None)),)
    )
    return [*_of_process(), up, *(_of_database(found) if found else ())]


def _of_process() -> list[Family]:
    build = Family("gpuexplore_build", "info", "What serves.", (({"version": gpuexplore.__version__}, 1.0),))
    failed = Family(
        "gpuexplore_page_errors",
        "counter",
        "Errors of pages that nobody expected, since this server started.",
        (({}, float(errors())),),
    )
    connected = connected_sessions()
    if connected is None:
        return [build, failed]
    pages = Family(
        "gpuexplore_sessions", "gauge", "Pages that are connected to this server.", (({}, float(connected)),)
    )
    return [build, failed, pages]


def _of_database(found: Figures) -> list[Family]:
    queues = [({"devices": queue.devices}, queue) for queue in found.queues]
    hosts = [({"host": each.host, "supervisor": each.name}, each.age_s) for each in found.supervisors]
    made = [
        Family(
            "gpuexplore_queue_runs",
            "gauge",
            "Runs that wait, by the devices they ask for.",
            tuple((labels, float(queue.runs)) for labels, queue in queues),
        ),
        Family(
            "gpuexplore_queue_oldest_wait_seconds",
            "gauge",
            "How long the run that came first has waited.",
            tuple((labels, queue.oldest_s) for labels, queue in queues),
            "seconds",
        ),
        Family(
            "gpuexplore_runs",
            "gauge",
            "Runs in the database, by state.",
            tuple(({"state": state.value}, float(found.runs.get(state.value, 0))) for state in RunState),
        ),
        Family(
            "gpuexplore_device_use_seconds",
            "counter",
            "How long devices worked for runs, by the devices these asked for.",
            tuple(({"devices": devices}, used_s) for devices, used_s in sorted(found.used_s.items())),
            "seconds",
        ),
        Family(
            "gpuexplore_supervisor_age_seconds",
            "gauge",
            "How long ago a supervisor reported itself.",
            tuple(hosts),
            "seconds",
        ),
        Family(
            "gpuexplore_database_size_bytes",
            "gauge",
            "What the database takes of its disk.",
            (({}, float(found.database_bytes)),),
            "bytes",
        ),
    ]
    if found.free_bytes is not None:
        free = float(found.free_bytes)
        made.append(Family("gpuexplore_disk_free_bytes", "gauge", "What is free of that disk.", (({}, free),), "bytes"))
    return made


def show_metrics(request: Request) -> Response:
    """Answer with the metrics, or as the setting says."""
    try:
        allowed = metrics()
    except InvalidInput as error:
        return PlainTextResponse(f"{error}\n", status_code=503)
    if allowed is None:
        return PlainTextResponse("Not found\n", status_code=404)
    if allowed != ANYBODY and not _shows(request, allowed):
        challenge = {"www-authenticate": "Bearer"}
        return PlainTextResponse("Show the token of GPUEXPLORE_METRICS\n", status_code=401, headers=challenge)
    return Response(exposition(_families(FIGURES.get(moment(LOOKS), _look))), headers={"content-type": CONTENT_TYPE})


def _look() -> Figures | None:
    try:
        return figures(store())
    except StoreUnavailable:
        return None


def _shows(request: Request, token: str) -> bool:
    kind, _, shown = request.headers.get("authorization", "").partition(" ")
    return kind.casefold() == "bearer" and compare_digest(shown.strip().encode(), token.encode())


METRICS_ROUTE = Route("/metrics", show_metrics)
