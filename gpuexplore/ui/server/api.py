"""The API for programs: readiness and state of the server. Names and runs of users are not in it."""

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

import gpuexplore
from gpuexplore.core.errors import GpuExploreError
from gpuexplore.store import Store, Supervisor
from gpuexplore.ui.session import store


def ready(_: Request) -> JSONResponse:
    """Answer 200 when what is queued now would be measured, else 503 with the reason: for balancers and monitors."""
    try:
        store().ready()
    except GpuExploreError as error:
        return _unavailable(error)
    return JSONResponse({"ready": True})


def status(_: Request) -> JSONResponse:
    """Answer with the version, how many runs wait and are measured, and who measures on what."""
    try:
        return JSONResponse(_status(store()))
    except GpuExploreError as error:
        return _unavailable(error)


def _unavailable(error: GpuExploreError) -> JSONResponse:
    return JSONResponse({"ready": False, "reason": str(error)}, 503)


def _status(store: Store) -> dict[str, object]:
    return {
        "version": gpuexplore.__version__,
        "waiting": store.queue_length(),
        "running": len(store.running()) + len(store.running_activities()),
        "supervisors": [_supervisor(supervisor) for supervisor in store.supervisors()],
    }


def _supervisor(supervisor: Supervisor) -> dict[str, object]:
    return {
        "host": supervisor.host,
        "version": supervisor.version,
        "state": supervisor.state,
        "alive": supervisor.alive,
        "age_s": round(supervisor.age_s, 1),
        "devices": [{"id": device.id, "name": device.title} for device in supervisor.devices],
    }


ROUTES = (Route("/api/ready", ready), Route("/api/status", status))
