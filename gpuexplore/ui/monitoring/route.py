"""Answers at `/metrics`: to nobody, to whoever asks, or to whoever shows the token that a setting names."""

from secrets import compare_digest

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from gpuexplore.errors import InvalidInput, StoreUnavailable
from gpuexplore.store.figures import Figures, figures
from gpuexplore.ui.environment import metrics
from gpuexplore.ui.monitoring.families import families
from gpuexplore.ui.monitoring.openmetrics import CONTENT_TYPE, exposition
from gpuexplore.ui.session import store
from gpuexplore.ui.shared import Shared, moment

LOOKS = 4  # for so many one look counts: a second
FIGURES: Shared[Figures | None] = Shared(1)
ANYBODY = "on"


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
    return Response(exposition(families(FIGURES.get(moment(LOOKS), _look))), headers={"content-type": CONTENT_TYPE})


def _look() -> Figures | None:
    try:
        return figures(store())
    except StoreUnavailable:
        return None


def _shows(request: Request, token: str) -> bool:
    kind, _, shown = request.headers.get("authorization", "").partition(" ")
    return kind.casefold() == "bearer" and compare_digest(shown.strip().encode(), token.encode())


METRICS_ROUTE = Route("/metrics", show_metrics)
