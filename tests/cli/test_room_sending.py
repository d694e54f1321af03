"""`run --room URL`: what was measured here is sent to a room elsewhere, under a name of one's own."""

import json
import stat
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from gpuexplore.cli import main, room_sending
from gpuexplore.cli.output import EXIT_OK, EXIT_UNUSABLE
from gpuexplore.cli.room_sending import destination, keep
from gpuexplore.core.errors import InvalidInput
from gpuexplore.rooms import _WrongCodes
from gpuexplore.ui import session
from gpuexplore.ui.server import api
from tests.ui.test_sending import port

__all__ = ["port"]  # a fixture
TINY = ("vector_add", "--size", "8", "--impl", "numpy", "--dtype", "fp32", "--device", "cpu", "--budget", "0.01")


@pytest.fixture
def store(home, monkeypatch):
    monkeypatch.setattr(api, "WRONG_CODES", _WrongCodes())
    monkeypatch.setattr(room_sending, "user_name", lambda: "ada")
    session.store.cache_clear()
    yield session.store()
    session.store().close()
    session.store.cache_clear()


@pytest.fixture
def room(store):
    return store.open_room("leader", "GPU course", 4)[0]


@pytest.fixture
def address(port, room):
    return f"http://127.0.0.1:{port}/rooms?room={room.code}"


@pytest.mark.slow
def test_a_run_is_measured_here_and_shown_there(store, room, address, port, capsys, home):
    assert main(["run", *TINY, "--no-save", "--room", address]) == EXIT_OK

    said = capsys.readouterr().err
    run = store.load(store.listed()[0].id)
    assert f"In room {room.code[:3]} {room.code[3:]} of http://127.0.0.1:{port} as ada" in said
    assert f"http://127.0.0.1:{port}/benchmark?run={run.id}" in said
    assert run.origin.startswith("sent by ada, measured on ")
    assert [result.status for result in run.results] == ["ok"]
    (kept,) = json.loads((home / "rooms.json").read_text()).items()
    assert kept[0] == f"http://127.0.0.1:{port}/?room={room.code}"
    assert stat.S_IMODE((home / "rooms.json").stat().st_mode) == 0o600


def test_who_sends_again_is_who_they_were_under_the_name_of_before_or_another(store, room, address):
    first = destination(address, "Ada L.")
    assert first.join() == "Ada L."
    keep(first)

    again = destination(address.replace("/rooms", ""), "")
    assert (again.secret, again.join()) == (first.secret, "Ada L.")
    assert destination(address, "Countess").join() == "Countess"
    assert [person.name for person in store.participants(room)] == ["Countess"]


def test_each_room_has_a_secret_of_its_own(store, address):
    other = destination(address.replace("?", "?lead=no&"), "")
    assert other.secret != destination(address, "").secret  # neither is kept yet
    keep(other)
    assert destination(address, "").secret == other.secret
    assert destination(address[:-6] + "CDFHJK", "").secret != other.secret


def test_what_the_server_refuses_is_said_before_anything_is_measured(store, room, address, capsys, monkeypatch, home):
    monkeypatch.setattr(room_sending, "data_directory", lambda: home / "of bob")
    (home / "of bob").mkdir()
    destination(address, "Ada").join()

    assert main(["run", *TINY, "--no-save", "--room", address, "--name", "Ada"]) == EXIT_UNUSABLE

    assert "the name 'Ada' is taken in room" in (said := capsys.readouterr().err)
    assert "choose another one with --name" in said
    assert not (home / "of bob" / "rooms.json").exists()
    store.close_room("leader", room)
    with pytest.raises(InvalidInput, match="is closed: it no longer accepts results"):
        destination(address, "").join()


@pytest.mark.parametrize(
    "given",
    [
        "https://host/",
        "host/?room=CDFHJK",
        "file:///etc/passwd?room=CDFHJK",
        "https://ada:secret@host/?room=CDFHJK",
        "https:///?room=CDFHJK",
        "http://[/?room=CDFHJK",
        "https://host/?room=CDFHJK&room=CDFHJM",
    ],
)
def test_an_address_that_names_no_room_is_refused(store, given):
    with pytest.raises(InvalidInput, match=r"--room '.*': expected addresses like https://host/\?room=CODE"):
        destination(given, "")


def test_a_code_that_cannot_be_one_and_a_name_without_a_room_are_refused(store, capsys):
    with pytest.raises(InvalidInput, match="room 'abc': expected codes of 6 letters"):
        destination("https://host/?room=abc", "")
    assert main(["run", *TINY, "--name", "Ada"]) == EXIT_UNUSABLE
    assert "--name 'Ada': expected a name together with --room URL" in capsys.readouterr().err


@pytest.mark.parametrize("user", ["\x07", "", "…"])
def test_who_has_no_name_that_can_be_shown_is_called_as_the_machine_is(store, monkeypatch, user):
    monkeypatch.setattr(room_sending, "user_name", lambda: user)
    monkeypatch.setattr(room_sending.socket, "gethostname", lambda: "laptop-of-a-very-long-name-indeed")

    assert destination("https://host/?room=CDFHJK", "").name == "laptop-of-a-very-long-na"


def test_a_server_that_is_not_there_is_named_with_the_way_around(store):
    with pytest.raises(
        InvalidInput, match=r"http://127.0.0.1:9 cannot be reached .*upload that file on the app's page Runs"
    ):
        destination("http://127.0.0.1:9/?room=CDFHJK", "").join()


def test_the_secret_follows_no_redirect(store):
    asked = []

    class Elsewhere(BaseHTTPRequestHandler):
        def do_POST(self):
            asked.append(self.path)
            self.send_response(307)
            self.send_header("Location", "/stolen")
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        with pytest.raises(InvalidInput, match="HTTP status 307"):
            destination(f"http://127.0.0.1:{server.server_port}/?room=CDFHJK", "").join()
        server.shutdown()
        thread.join()

    assert [path.partition("?")[0] for path in asked] == ["/api/room"]
