"""`gpuexplore room`: from opening one to deleting it, and what is refused."""

import json

import pytest

from gpuexplore.cli import main
from gpuexplore.cli.output import EXIT_OK, EXIT_UNUSABLE
from gpuexplore.rooms import read_code
from gpuexplore.store import open_store

CODE = "the code of the room"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUEXPLORE_HOME", str(tmp_path))
    monkeypatch.delenv("GPUEXPLORE_DATABASE_URL", raising=False)


@pytest.fixture
def said(capsys):
    def run(*words, code=EXIT_OK):
        assert main(["room", *words]) == code
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return printed.out if code == EXIT_OK else printed.err

    return run


def test_a_room_from_opening_to_deleting(said):
    opened = json.loads(said("open", "--title", "GPU course", "--hours", "2", "--address", "http://lab/", "--json"))
    code = opened["code"]

    assert read_code(code) == code
    assert opened["address"] == f"http://lab/rooms?room={code}"
    with open_store() as store:
        room = store.room_of(code)
        store.join_room("c1", room, "Ada")
        assert store.take_lead("tablet", room, opened["leader"].rpartition("=")[2])
    assert "GPU course" in said()
    assert json.loads(said("--json"))[0]["people"] == 1
    assert "Ada, joined at" in said("show", code.lower())
    assert ": Guess first" in said("say", code, "Guess  first")
    assert json.loads(said("show", code, "--json"))["message"] == "Guess first"
    assert "is closed" in said("close", code)
    assert json.loads(said("--json"))[0]["state"] == "closed"
    assert "is deleted" in said("delete", code)
    assert "no room was opened from a terminal" in said()


def test_opening_says_how_to_join_and_how_to_lead(said):
    lines = said("open").splitlines()

    assert lines[0].endswith("UTC")
    assert lines[1].startswith("to join: http://127.0.0.1:8501/rooms?room=")
    assert lines[2].startswith("to lead (keep this link private): http://127.0.0.1:8501/rooms?room=")
    assert "&lead=" in lines[2]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["open", "--hours", "0"], "hours '0': expected whole numbers from 1 to 168"),
        (["open", "--title", "x" * 81], "at most 80 characters"),
        (["show", "ABC"], "room 'ABC': expected codes of 6 letters"),
        (["close", "KTRMWX"], "no room has the code 'KTRMWX'"),
        (["ask", CODE, "dance"], "kind of goal 'dance': expected share"),
        (["ask", CODE, "share", "50"], "setting '50': expected NAME=VALUE"),
        (["ask", CODE, "lesson"], "lesson '': expected tour"),
        (["export", CODE, "room.doc"], "file 'room.doc': expected names that end with .csv or .html"),
        (["export", CODE, "/nowhere/room.csv"], "expected writable files"),
        (["share", CODE, "0"], "weight '0': expected whole numbers from 1 to 100"),
    ],
)
def test_bad_words_are_named_with_what_is_accepted(said, words, message):
    code = json.loads(said("open", "--json"))["code"]

    assert message in said(*(code if word is CODE else word for word in words), code=EXIT_UNUSABLE)


def test_a_room_that_a_browser_opened_is_not_the_terminals(said):
    with open_store() as store:
        room, _ = store.open_room("somebody", "theirs", 1)

    assert "only its leader can do this" in said("delete", room.code, code=EXIT_UNUSABLE)
    assert "theirs" not in said()


def test_a_room_is_asked_and_what_came_of_it_is_written(said, tmp_path):
    code = json.loads(said("open", "--json"))["code"]
    assert ": How long does torch take for matmul of size 512 in fp32?" in said("ask", code, "guess", "size=512")
    assert "step a" in said("ask", code, "lesson", "lesson=tour")
    with open_store() as store:
        room = store.room_of(code)
        store.join_room("c1", room, "Ada")
        store.give_guess("c1", room, store.tasks_of_room(room)[0].number, guess=1e-3)
    said("export", code, str(tmp_path / "room.csv"))
    assert "Ada,begun,1.00 ms" in (tmp_path / "room.csv").read_text()
    said("export", code, str(tmp_path / "room.html"), "--anonymous")
    report = (tmp_path / "room.html").read_text()
    assert "participant 1" in report
    assert "Ada" not in report


def test_a_room_gets_a_share_of_the_devices(said):
    code = json.loads(said("open", "--json"))["code"]

    assert "gets 30 times the device time of one user" in said("share", code, "30")
    with open_store() as store:
        assert store.room_of(code).weight == 30
