"""Runs that laptops send to a room: let in by its code, kept with their origin, limited, and nobody else's."""

import asyncio
import json
import threading
import time
from http.client import HTTPConnection

import pytest
import uvicorn
from starlette.applications import Starlette

from gpuexplore.rooms import MOST_OF_ONE, _WrongCodes
from gpuexplore.store import Wanted
from gpuexplore.store.room_tasks import owner_of_sender
from gpuexplore.ui import session
from gpuexplore.ui.server import MIDDLEWARE, OWNER_COOKIE, api
from scripts.app_server import free_port
from tests.recorded.test_files import RESULTS, report
from tests.waiting import DEADLINE_S, wait_until

__all__ = ["report"]  # a fixture

SECRET, OTHER = "a-secret-of-ada-0123456789", "a-secret-of-bob-0123456789"
LEADER = "the one who leads"


@pytest.fixture(scope="module")
def port():
    """Return the port at which the routes answer, behind what every request passes."""
    found = free_port()
    app = Starlette(routes=api.ROUTES, middleware=list(MIDDLEWARE))
    server = uvicorn.Server(uvicorn.Config(app, port=found, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    wait_until(lambda: server.started)
    yield found
    server.should_exit = True
    thread.join()


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch, quick_database):
    monkeypatch.setenv("GPUEXPLORE_HOME", str(tmp_path))
    monkeypatch.delenv("GPUEXPLORE_DATABASE_URL", raising=False)
    monkeypatch.setattr(api, "WRONG_CODES", _WrongCodes())
    session.store.cache_clear()
    yield session.store()
    session.store().close()
    session.store.cache_clear()


@pytest.fixture
def room(store):
    return store.open_room(LEADER, "GPU course", 4)[0]


@pytest.fixture
def send(port, room):
    """Return how to send to the room; it returns status and answer."""

    def sent(content=b"", *, code=None, name="Ada", secret=SECRET, **headers):
        connection = HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
        headers = {"Authorization": f"Bearer {secret}", **headers}
        body = json.dumps(content).encode() if isinstance(content, dict) else content
        connection.request("POST", f"/api/room?room={code or room.code}&name={name}", body, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, json.loads(text) if text.startswith("{") else {"reason": text}

    return sent


def test_a_run_is_kept_with_its_origin_and_its_sender_is_in_the_room(send, store, room, report):
    status, answer = send(report)

    run = store.load(answer["run"])
    (sender,) = store.participants(room)
    assert (status, answer["name"], answer["title"]) == (200, "Ada", "Before the fan")
    assert run.results == RESULTS
    assert run.origin == "sent by Ada, measured on a made-up processor"
    assert run.owner == owner_of_sender(room, SECRET)
    assert store.participant_of(run.owner, room).number == sender.number
    assert store.listed(Wanted(owner=run.owner))[0].device_names == "a made-up processor"
    assert store.measured_results(RESULTS[0].environment.device) == ()


def test_the_second_run_is_of_the_same_participant_who_may_take_another_name(send, store, room, report):
    first, second = send(report)[1], send(report, name="")[1]
    renamed = send(report, name="Ada%20L.")[1]

    assert [each["name"] for each in (first, second, renamed)] == ["Ada", "Ada", "Ada L."]
    assert len({store.load(each["run"]).owner for each in (first, second, renamed)}) == 1
    assert [person.name for person in store.participants(room)] == ["Ada L."]


def test_joining_alone_sends_nothing(send, store, room):
    assert send() == (200, {"room": room.code, "name": "Ada"})
    assert store.listed() == ()


def test_a_name_that_is_taken_is_refused_with_what_to_do(send, store, room, report):
    send()

    assert send(report, name="ADA", secret=OTHER) == (
        409,
        {"reason": f"the name 'ADA' is taken in room {room.code[:3]} {room.code[3:]}: choose another one with --name"},
    )
    assert len(store.participants(room)) == 1
    assert store.listed() == ()


@pytest.mark.parametrize("name", ["", "%20", "x" * 25, "%07", "%E2%80%8B"])
def test_a_name_that_cannot_be_one_is_refused(send, store, room, name):
    status, answer = send(name=name)

    assert status == 400
    assert answer["reason"].startswith("name ")
    assert store.participants(room) == ()


def test_wrong_codes_are_counted_and_codes_that_cannot_be_are_named(send, report, monkeypatch):
    assert send(report, code="AEIOUX")[0] == 400
    wrong = [send(b"", code="CDFHJK") for _ in range(2)]
    monkeypatch.setattr("gpuexplore.rooms.MOST_OF_ONE", 2)

    assert MOST_OF_ONE > 2
    assert {status for status, _ in wrong} == {404}
    assert wrong[0][1]["reason"] == "no room has the code CDF HJK: it may be mistyped, or the room was deleted"
    status, answer = send(report)
    assert status == 429
    assert "2 wrong room codes were sent from your network address" in answer["reason"]


def test_wrong_codes_of_others_keep_nobody_waiting_who_is_in(send, report, monkeypatch):
    assert send(report)[0] == 200
    monkeypatch.setattr("gpuexplore.rooms.MOST_OF_ONE", 1)
    assert send(b"", code="CDFHJK")[0] == 404
    assert send(b"", code="CDFHJK")[0] == 429

    assert send(report)[0] == 200


def test_a_closed_room_and_a_removed_sender_are_refused(send, store, room, report):
    send(report)
    (sender,) = store.participants(room)
    store.remove_participant(LEADER, room, sender.number)
    assert send(report) == (403, {"reason": "the leader removed you from this room"})

    store.close_room(LEADER, room)
    status, answer = send(report, secret=OTHER, name="Bob")
    assert status == 409
    assert answer["reason"].endswith("is closed: it no longer accepts results")
    assert len(store.listed()) == 1


@pytest.mark.parametrize("secret", ["", "short", "x" * 65, "a secret with spaces 0123456789"])
def test_who_sends_no_secret_is_refused(send, store, room, report, secret):
    assert send(report, secret=secret)[0] == 401
    assert store.participants(room) == ()


def test_nothing_that_is_sent_says_whose_it_is(send, store, room, report):
    report["run"] |= {"owner": LEADER, "id": "abcdefghij"}

    _, answer = send(report, Cookie=f"{OWNER_COOKIE}={LEADER}", **{"X-Forwarded-For": "10.0.0.1"})

    assert store.load(answer["run"]).owner == owner_of_sender(room, SECRET)
    assert answer["run"] != "abcdefghij"
    assert store.listed(Wanted(owner=LEADER)) == ()


def test_a_page_of_another_server_sends_nothing(send, store, report):
    assert send(report, Origin="http://evil.example")[0] == 403
    assert store.listed() == ()


def test_a_secret_makes_another_sender_in_another_room(store, room):
    other, _ = store.open_room(LEADER, "Another", 4)

    assert owner_of_sender(room, SECRET) != owner_of_sender(other, SECRET)


@pytest.mark.parametrize(
    "content",
    [b"{", b"[]", b"\x80\x04\x95", b"[" * 100_000, b'{"schema_version": 1}', b'{"schema_version": 1e999}'],
    ids=["cut", "list", "pickle", "nested", "empty", "infinite"],
)
def test_what_is_no_exported_run_is_refused_in_a_sentence(send, store, content):
    status, answer = send(content)

    assert status == 400
    assert "report.json" in answer["reason"]
    assert store.listed() == ()


def test_an_experiment_of_too_many_cases_is_refused_before_they_are_made(send, report):
    report["experiment"]["implementations"] = [f"torch:{number}" for number in range(200_000)]
    started_s = time.process_time()

    status, answer = send(report)

    assert (status, "at most 5,000" in answer["reason"]) == (400, True)
    assert time.process_time() - started_s < 30


def test_what_is_too_large_is_refused_before_all_of_it_is_read(send, port, room, monkeypatch):
    monkeypatch.setattr(api, "MAX_RUN_BYTES", 1000)
    assert send(b"x" * 1001)[0] == 413

    connection = HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
    connection.putrequest("POST", f"/api/room?room={room.code}&name=Ada")
    connection.putheader("Authorization", f"Bearer {SECRET}")
    connection.putheader("Transfer-Encoding", "chunked")  # says nothing of its length, and never ends
    connection.endheaders()
    connection.send(b"400\r\n" + b"x" * 1024 + b"\r\n")
    assert connection.getresponse().status == 413
    connection.close()


def test_so_many_results_are_kept_of_one_and_in_a_room(send, store, report, monkeypatch):
    monkeypatch.setattr(api, "MAX_RESULTS_OF_PARTICIPANT", 7)
    send(report)
    status, answer = send(report)
    assert (status, answer["reason"]) == (
        409,
        "4 results of yours were sent, and the limit is 7: these 4 were not saved",
    )

    monkeypatch.setattr(api, "MAX_RESULTS_OF_ROOM", 11)
    assert send(report, secret=OTHER, name="Bob")[0] == 200
    status, answer = send(report, secret=f"{OTHER}-2", name="Cem")
    assert answer["reason"] == "8 results of this room were sent, and the limit is 11: these 4 were not saved"
    assert len(store.listed()) == 2


def test_a_database_that_is_away_is_told(send, report, monkeypatch):
    monkeypatch.setattr(api, "store", _Away)

    assert send(report)[0] == 503


class _Away:
    def room_of(self, code):
        raise api.StoreUnavailable("the database is away")


def test_a_run_that_does_not_arrive_gives_its_place_to_others(port, room, send, report, monkeypatch):
    monkeypatch.setattr(api, "UPLOAD_TIMEOUT_S", 0.3)
    monkeypatch.setattr(api, "_TAKEN", asyncio.Semaphore(1))
    slow = HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
    slow.putrequest("POST", f"/api/room?room={room.code}&name=Eve")
    slow.putheader("Authorization", f"Bearer {SECRET}eve")
    slow.putheader("Content-Length", "1000")
    slow.endheaders(b"{")

    assert send(report)[0] == 200
    assert slow.getresponse().status == 408
    slow.close()
