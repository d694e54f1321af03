"""The API for programs: readiness and state of the server; runs that laptops send to a room.

Names and runs of users are not in the state. The sender of `gpuexplore run ... --room URL` is recognised by a secret of
their own, and is a participant of the room under a name.
"""

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http import HTTPStatus
from ipaddress import ip_address
from threading import Lock

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

import gpuexplore
from gpuexplore.core.errors import GpuExploreError, InvalidInput, StoreUnavailable
from gpuexplore.jobs.run_sources import keep_run, runs_in
from gpuexplore.recorded.files import origin_of
from gpuexplore.rooms import HERE, WRONG_CODES, Participant, Room, RoomState, name_key, read_code, read_name, spoken
from gpuexplore.store.room_tasks import owner_of_sender
from gpuexplore.ui.identity import OWNER_COOKIE
from gpuexplore.ui.session import SUPERVISOR_DUE, store
from gpuexplore.ui.shared import shared_values

MAX_RUN_BYTES = 4_000_000
UPLOAD_TIMEOUT_S = 30.0
MAX_RESULTS_OF_PARTICIPANT = 1000
MAX_RESULTS_OF_ROOM = 20_000
_TAKEN = asyncio.Semaphore(4)  # of the others nothing is in memory yet but what the network buffers
_READERS = ThreadPoolExecutor(2, "sent-runs")  # health and pages have the other threads, however much is sent
_ONE_AT_A_TIME = Lock()  # what is counted stands until it is kept


def _ready(_: Request) -> JSONResponse:
    """Answer 200 when what is queued now would be measured, else 503 with the reason: for balancers and monitors."""
    SUPERVISOR_DUE.set()
    try:
        store().ready()
    except GpuExploreError as error:
        return _unavailable(error)
    return JSONResponse({"ready": True})


def _status(request: Request) -> JSONResponse:
    """Answer with the version, how many runs wait and are measured, who measures on what, and how the asker's wait."""
    try:
        state, own_runs = _look()
        return JSONResponse({**state, "yours": own_runs.get(request.cookies.get(OWNER_COOKIE, ""))})
    except GpuExploreError as error:
        return _unavailable(error)


def _unavailable(error: GpuExploreError) -> JSONResponse:
    return JSONResponse({"ready": False, "reason": str(error)}, 503)


@shared_values(1, looks=3)
def _look() -> tuple[dict[str, object], dict[str, str]]:
    """Return the state for all askers, each page among them, and that of the runs of each owner."""
    found = store()
    measured = [run.owner for run in found.running()] + [run.owner for run in found.running_activities()]
    waiting = {run.owner: f"yours is number {run.position}" for run in reversed(found.waiting(100))}
    state = {
        "version": gpuexplore.__version__,
        "waiting": found.queue_length(),
        "running": len(measured),
        "supervisors": [
            {
                "host": supervisor.host,
                "version": supervisor.version,
                "state": supervisor.state,
                "alive": supervisor.alive,
                "age_s": round(supervisor.age_s, 1),
                "devices": [{"id": device.id, "name": device.title} for device in supervisor.devices],
            }
            for supervisor in found.supervisors()
        ],
    }
    return state, waiting | dict.fromkeys(measured, "measuring your run")


async def _take_run(request: Request) -> JSONResponse:
    """Let a sender into the room of the parameter `room` under `name`, and keep the exported run in the body.

    An empty body only lets them in. Answers with the room's code, the name, and the run's id and title where there is
    one; a refusal with its reason.
    """
    try:
        query = dict(request.query_params)
        loop = asyncio.get_running_loop()
        find = partial(_room, query.get("room", ""), _secret(request), _whence(request))
        room, owner = await loop.run_in_executor(_READERS, find)  # first: who is not of the room takes no slot
        async with _TAKEN:
            content = await _body(request)
            take = partial(_take, room, owner, query.get("name", ""), content)
            return JSONResponse(await loop.run_in_executor(_READERS, take))
    except HTTPException as refusal:
        return JSONResponse({"reason": refusal.detail}, refusal.status_code)
    except StoreUnavailable as error:
        return JSONResponse({"reason": str(error)}, HTTPStatus.SERVICE_UNAVAILABLE)
    except GpuExploreError as error:
        return JSONResponse({"reason": str(error)}, HTTPStatus.BAD_REQUEST)


async def _body(request: Request) -> bytes:
    """Return what was sent, reading no more than it may be, whatever its header says."""
    too_large = HTTPException(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        f"a run may have at most {MAX_RUN_BYTES:,} bytes: measure fewer points at a time",
    )
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length[:20]) > MAX_RUN_BYTES:
        raise too_large
    parts: list[bytes] = []
    length_bytes = 0
    try:
        async with asyncio.timeout(UPLOAD_TIMEOUT_S):
            async for part in request.stream():
                parts.append(part)
                length_bytes += len(part)
                if length_bytes > MAX_RUN_BYTES:
                    raise too_large
    except TimeoutError as error:
        late = f"the run did not arrive within {UPLOAD_TIMEOUT_S:g} s"
        raise HTTPException(HTTPStatus.REQUEST_TIMEOUT, late) from error
    return b"".join(parts)


def _secret(request: Request) -> str:
    kind, _, secret = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not re.fullmatch("[A-Za-z0-9_-]{24,64}", secret):
        raise HTTPException(
            HTTPStatus.UNAUTHORIZED, "no secret: send the header Authorization: Bearer with 24 to 64 letters and digits"
        )
    return secret


def _whence(request: Request) -> str:
    """Return the network address of who sends, as pages name it: wrong codes are counted by it."""
    try:
        address = ip_address(request.client.host if request.client else "")
    except ValueError:
        return HERE
    return HERE if address.is_loopback else str(address)


def _take(room: Room, owner: str, name: str, content: bytes) -> dict[str, object]:
    runs = runs_in("report.json", content) if content else ()  # an exported run
    with _ONE_AT_A_TIME:
        sender = _participant(room, owner, name)
        answer: dict[str, object] = {"room": room.code, "name": sender.name}
        for run in runs:
            _check_space(room, owner, len(run.results))
            kept = keep_run(store(), run, owner, origin=origin_of(f"sent by {sender.name}", run.results))
            answer |= {"run": kept.id, "title": kept.title}
    return answer


def _room(text: str, secret: str, whence: str) -> tuple[Room, str]:
    """Return the room with a code, and as whom its sender is known there; wrong codes lock out no participant."""
    code = read_code(text)
    room = store().room_of(code)
    owner = owner_of_sender(room, secret) if room else ""
    if room is not None and store().participant_of(owner, room) is not None:
        WRONG_CODES.note_entered(whence, code)
    else:
        try:
            WRONG_CODES.check(whence, code)
        except InvalidInput as error:
            raise HTTPException(HTTPStatus.TOO_MANY_REQUESTS, str(error)) from error
    if room is None:
        WRONG_CODES.note(whence)
        raise HTTPException(
            HTTPStatus.NOT_FOUND, f"no room has the code {spoken(code)}: it may be mistyped, or the room was deleted"
        )
    if room.state is not RoomState.OPEN:
        raise HTTPException(HTTPStatus.CONFLICT, f"room {spoken(code)} is {room.state}: it no longer accepts results")
    return room, owner


def _participant(room: Room, owner: str, typed: str) -> Participant:
    """Return who sends, let in or renamed where a name is given."""
    here = store().participant_of(owner, room)
    if here is not None and here.removed:
        raise HTTPException(HTTPStatus.FORBIDDEN, "the leader removed you from this room")
    if here is not None and not typed:
        return here
    name = read_name(typed)
    if here is not None and here.name == name:
        return here
    if any(name_key(other.name) == name_key(name) and other != here for other in store().participants(room)):
        taken = f"the name {name!r} is taken in room {spoken(room.code)}: choose another one with --name"
        raise HTTPException(HTTPStatus.CONFLICT, taken)
    try:
        return store().join_room(owner, room, name)
    except InvalidInput as error:  # full, closed or taken meanwhile
        raise HTTPException(HTTPStatus.CONFLICT, str(error)) from error


def _check_space(room: Room, owner: str, more: int) -> None:
    for count, most, whose in (
        (store().sent_by(owner), MAX_RESULTS_OF_PARTICIPANT, "of yours"),
        (store().sent_to(room), MAX_RESULTS_OF_ROOM, "of this room"),
    ):
        if count + more > most:
            raise HTTPException(
                HTTPStatus.CONFLICT,
                f"{count:,} results {whose} were sent, and the limit is {most:,}: these {more:,} were not saved",
            )


ROUTES = (
    Route("/api/ready", _ready),
    Route("/api/status", _status),
    Route("/api/room", _take_run, methods=["POST"]),
)
