"""`gpuexplore devices pause`, `drain`, `reserve` and `resume`."""

import json

import pytest

from gpuexplore.cli import main
from gpuexplore.cli.output import EXIT_OK, EXIT_UNUSABLE
from gpuexplore.store import open_store
from gpuexplore.store.turns import RestrictionKind


@pytest.fixture
def said(capsys):
    def run(*words, code=EXIT_OK):
        assert main(["devices", *words]) == code
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return printed.out if code == EXIT_OK else printed.err

    return run


def held():
    with open_store() as store:
        return store.current_restrictions()


def test_a_device_is_held_back_and_measures_again(said):
    assert "held" not in said()
    assert said("pause", "cpu", "--reason", "new cooler") == "cpu is paused: new cooler\n"
    assert said().endswith("cpu is paused: new cooler\n")
    assert said("drain", "cpu") == "cpu is drained\n"
    (found,) = json.loads(said("drain", "cpu", "--json"))
    assert found == {"device": "cpu", "kind": "drained", "held": "cpu is drained"}
    assert said("resume", "cpu") == "cpu is available again\n"
    assert said("resume", "cpu") == "cpu was not restricted\n"
    assert held() == ()


def test_a_device_is_reserved_for_an_account_until_then(said):
    assert said("reserve", "cpu", "--for", "Ada@Example.org", "--until", "4h").startswith("cpu is reserved until 20")

    (found,) = held()
    assert (found.kind, found.owner) == (RestrictionKind.RESERVED, "user:ada@example.org")


def test_listing_devices_makes_no_database(said, home):
    said()

    assert not (home / "gpuexplore.sqlite3").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["pause", "cuda:9"], "device 'cuda:9': expected cpu"),
        (["reserve", "cpu", "--for", "ada", "--until", "soon"], "expected a number and a unit"),
        (["pause", "cpu", "--reason", "x" * 201], "reason"),
        (["pause", "cpu", "--reason", "a\x07"], "characters that can be shown"),
    ],
)
def test_bad_words_are_named_with_what_is_accepted(said, words, message):
    assert message in said(*words, code=EXIT_UNUSABLE)
    assert held() == ()
