"""What takes seconds is made behind the pages."""

from threading import Event

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from gpuexplore.core.errors import Unsupported
from gpuexplore.ui.shared import later
from gpuexplore.ui.shared.later import ABANDONED_S, KEPT_S, PENDING, Later
from tests.waiting import DEADLINE_S


@pytest.fixture(autouse=True)
def session(monkeypatch):
    state = {}
    monkeypatch.setattr(st, "session_state", state)
    return state


class Clock:
    now_s = 0.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def made(clock):
    return Later(clock)


def until(made, key):
    """Wait for the maker, and return what it made."""
    return made._wanted[key].found.result(DEADLINE_S)


def test_what_is_made_at_once_is_there_at_once(made, session, monkeypatch):
    monkeypatch.setattr(later, "PATIENCE_S", DEADLINE_S)

    assert made.get("key", lambda: "value") == "value"
    assert not session


def test_what_takes_longer_is_on_its_way_and_made_once(made, session):
    go, calls = Event(), []

    def make():
        calls.append(go.wait(DEADLINE_S))
        return "value"

    assert made.get("key", make) is None
    assert made.get("key", make) is None
    assert session[PENDING] == [(made, "key")] * 2
    assert made.is_pending("key")
    go.set()
    assert until(made, "key") == "value"
    assert not made.is_pending("key")
    assert made.get("key", make) == "value"
    assert calls == [True]


def test_an_error_is_that_of_whoever_asks(made, monkeypatch):
    monkeypatch.setattr(later, "PATIENCE_S", DEADLINE_S)

    def fail():
        raise Unsupported("no compiler")

    for _ in range(2):
        with pytest.raises(Unsupported, match="no compiler"):
            made.get("key", fail)
    assert made.get("other", lambda: "value") == "value"


def test_what_nobody_waits_for_any_more_is_not_made(made, clock):
    go, calls = Event(), []
    made.get("first", lambda: go.wait(DEADLINE_S))
    made.get("left", lambda: calls.append("left"))
    made.get("stays", lambda: calls.append("stays"))
    clock.now_s = ABANDONED_S + 1
    assert made.is_pending("stays")
    go.set()
    until(made, "stays")

    assert calls == ["stays"]
    assert not made.is_pending("left")


def test_what_was_made_is_made_again_after_a_while(made, clock, monkeypatch):
    monkeypatch.setattr(later, "PATIENCE_S", DEADLINE_S)
    values = iter(("first", "second"))

    assert made.get("key", lambda: next(values)) == "first"
    clock.now_s = KEPT_S + 1
    assert made.get("key", lambda: next(values)) == "second"


def page():
    import streamlit as st

    from gpuexplore.ui.shared.later import redraw_when_made

    st.session_state["drawn"] = st.session_state.get("drawn", 0) + 1
    for pending in st.session_state.get("waits", [[]]).pop(0):
        st.session_state.setdefault("later.pending", []).append(pending)
    redraw_when_made()


class Stub:
    def __init__(self, *answers):
        self.answers = list(answers)

    def is_pending(self, _):
        return self.answers.pop(0)


@pytest.mark.parametrize(
    ("first", "second", "drawn"), [((True,), (True,), 1), ((False,), (True,), 2), ((True,), (False,), 2)]
)
def test_page_is_shown_again_as_soon_as_something_is_there(monkeypatch, first, second, drawn):
    monkeypatch.undo()
    app = AppTest.from_function(page)
    app.session_state["waits"] = [[(Stub(*first), "a"), (Stub(*second), "b")], []]
    app.run()

    assert app.session_state["drawn"] == drawn
    assert not app.exception
