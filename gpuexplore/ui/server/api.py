"""What programs ask of the server: whether it is ready, and what it is at. Nobody's runs and names are in it."""

from sqlalchemy.exc import SQLAlchemyError
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

import gpuexplore
from gpuexplore.errors import GpuExploreError
from gpuexplore.store import Supervisor
from gpuexplore.ui.session import live_supervisor, store

UNAVAILABLE = 503


def ready(_: Request) -> JSONResponse:
    """Answer 200 when what is queued now would be measured, else 503 with the reason: for balancers and monitors."""
    reason = _why_not_ready()
    return JSONResponse({"ready": reason is None, "reason": reason}, UNAVAILABLE if reason else 200)


def status(_: Request) -> JSONResponse:
    """Answer with the version, how long the queue is, and who measures on what."""
    supervisor = live_supervisor()
    supervisors = [_supervisor(supervisor)] if supervisor else []
    return JSONResponse(
        {"version": gpuexplore.__version__, "waiting": store().queue_length(), "supervisors": supervisors}
    )


def _why_not_ready() -> str | None:
    try:
        return None if live_supervisor() else "no supervisor measures what is queued"
    except (GpuExploreError, SQLAlchemyError) as error:
        return f"the database cannot be used: {str(error).splitlines()[0]}"


def _supervisor(supervisor: Supervisor) -> dict[str, object]:
    return {
        "state": supervisor.state,
        "age_s": round(supervisor.age_s, 1),
        "devices": [{"id": device.id, "name": device.title} for device in supervisor.devices],
    }


ROUTES = (Route("/api/ready", ready), Route("/api/status", status))
