"""What Prometheus and its like read at `/metrics`, where a setting allows it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from secrets import compare_digest
from typing import Literal

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

import gpuexplore
from gpuexplore.errors import InvalidInput, StoreUnavailable
from gpuexplore.jobs.server_settings import metrics
from gpuexplore.model import RunState
from gpuexplore.store.figures import Figures, figures
from gpuexplore.ui.monitoring.process import errors
from gpuexplore.ui.session import store
from gpuexplore.ui.shared import Shared, moment
from gpuexplore.ui.undocumented import connected_sessions

# Metrics at `/metrics`: switched off, public, or for requests with the token of a setting.


# Metrics as text in the form of OpenMetrics 1.0, which Prometheus reads.
#
# See https://github.com/prometheus/OpenMetrics/blob/main/specification/OpenMetrics.md


CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
SUFFIXES = {"gauge": "", "counter": "_total", "info": "_info"}
ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


@dataclass(frozen=True, slots=True)
class Family:
    """One metric.

    Attributes:
        name: without the suffix of its kind; ends in its unit where it has one.
        kind: what its values are: a counter never falls while the process lives.
        about: a sentence.
        samples: values by labels.
        unit: in the base form, `seconds` or `bytes`.
    """

    name: str
    kind: Literal["gauge", "counter", "info"]
    about: str
    samples: tuple[tuple[Mapping[str, str], float], ...]
    unit: str = ""


def exposition(families: Iterable[Family]) -> str:
    """Return the text of all families, each with its samples."""
    lines = [line for family in families for line in _lines(family)]
    return "\n".join([*lines, "# EOF", ""])


def _lines(family: Family) -> list[str]:
    head = [f"# TYPE {family.name} {family.kind}"]
    if family.unit:
        head.append(f"# UNIT {family.name} {family.unit}")
    head.append(f"# HELP {family.name} {family.about.translate(ESCAPES)}")
    name = f"{family.name}{SUFFIXES[family.kind]}"
    return [*head, *(f"{name}{_labels(labels)} {value:.15g}" for labels, value in family.samples)]


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    listed = ",".join(f'{name}="{value.translate(ESCAPES)}"' for name, value in labels.items())
    return f"{{{listed}}}"


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
    hosts = [({"host": each.host, "supervisor": each.name}, each.age_s) for each in found.supervisors]
    made = [
        Family(
            "gpuexplore_queue_runs",
            "gauge",
            "Runs that wait, by the devices they ask for.",
            tuple(({"devices": devices}, float(runs)) for devices, runs in found.waiting.items()),
        ),
        Family(
            "gpuexplore_queue_oldest_wait_seconds",
            "gauge",
            "How long the run that came first has waited.",
            tuple(({"devices": devices}, oldest_s) for devices, oldest_s in found.oldest_s.items()),
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


__all__ = ["METRICS_ROUTE"]
