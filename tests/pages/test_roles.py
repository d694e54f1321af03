"""Who may do what: a table of visitors and rights, and that every page asks it before it writes."""

import ast

import pytest
from streamlit.testing.v1 import AppTest

from gpuexplore.ui.roles import NEEDED, Right, _Role
from tests.pages.conftest import texts

KEY = "the-key-of-who-leads"
ACCOUNTS = {
    "GPUEXPLORE_ADMINS": "root@example.org",
    "GPUEXPLORE_LEADERS": "Teach@example.org, lead",
    "GPUEXPLORE_MEMBERS": "*@example.org, ada",
}
RIGHTS = {  # what each write of a page needs
    "submit": Right.MEASURE,
    "submit_all": Right.MEASURE,
    "ask": Right.MEASURE,
    "set_own_peak": Right.KEEP,
    "set_own_bandwidth": Right.KEEP,
    "import_runs": Right.KEEP,
}
OWN = {  # of what is the visitor's own, or, with admin=, of an administrator
    *("describe", "delete_run", "restore_run", "request_cancel", "delete_own_peak", "delete_own_bandwidth"),
    *("add_answer", "set_outcomes", "erase_answers", "see"),
}
ROOMS = {  # of whoever leads the room, or is in it: the store asks
    *("open_room", "take_lead", "new_leader_key", "announce", "close_room", "delete_room", "rename_participant"),
    *("remove_participant", "join_room", "leave_room", "see_participants", "show_names", "add_task", "mark_task"),
    *("time_task", "give_guess"),
}
READS = {
    *("answers_of", "answers_since", "check", "device_names", "history", "leads", "listed", "listed_run"),
    *("askers_of", "current_restrictions", "results_of_runs", "runs_of_room"),
    *("load_activity", "load_summary", "measured_results", "newest_activity", "newest_alike", "newest_result"),
    *("own_bandwidth", "own_peaks", "participant_of", "participants", "ready", "results_after", "room_of", "rooms_of"),
    *("running", "running_activities", "sent_by", "sent_to", "queue_length", "supervisors", "tags_in_use", "waiting"),
    *("answers_of_room", "guesses_of_room", "tasks_followed", "tasks_of_room"),
}


def who():
    import streamlit as st

    from gpuexplore.ui.roles import Right, _role, may

    st.text(_role().name)
    st.text(",".join(right.name for right in Right if may(right)))


@pytest.fixture
def visitor():
    """Return the role and the rights of a visitor, with or without an account."""

    def asked(account=None):
        app = AppTest.from_function(who)
        app.user = {"is_logged_in": True, "email": account, "email_verified": True} if account else {}
        app.run()
        assert not app.exception
        name, rights = (text.value for text in app.text)
        return name, rights

    return asked


MEMBER, LEADER = "MEASURE,KEEP", "MEASURE,KEEP,INSTRUCT"


@pytest.mark.parametrize(
    ("listed", "account", "role", "rights"),
    [
        ((), None, "MEMBER", MEMBER),
        ((), "ada", "MEMBER", MEMBER),
        (("GPUEXPLORE_ADMINS",), None, "MEMBER", MEMBER),
        (("GPUEXPLORE_ADMINS",), "Root@Example.org", "ADMIN", f"{LEADER},MANAGE"),
        (("GPUEXPLORE_LEADERS",), "teach@example.org", "LEADER", LEADER),
        (("GPUEXPLORE_LEADERS",), "ada", "MEMBER", MEMBER),
        (tuple(ACCOUNTS), None, "VIEWER", ""),
        (tuple(ACCOUNTS), "ada", "MEMBER", MEMBER),
        (tuple(ACCOUNTS), "bob@example.org", "MEMBER", MEMBER),
        (tuple(ACCOUNTS), "bob@example.org.evil", "VIEWER", ""),
        (tuple(ACCOUNTS), "lead", "LEADER", LEADER),
        (tuple(ACCOUNTS), "root@example.org", "ADMIN", f"{LEADER},MANAGE"),
    ],
)
def test_settings_give_accounts_their_role_and_roles_their_rights(visitor, monkeypatch, listed, account, role, rights):
    for setting, accounts in ACCOUNTS.items():
        monkeypatch.setenv(setting, accounts if setting in listed else "")

    assert visitor(account) == (role, rights)


def test_every_right_needs_a_role_and_no_viewer_has_one():
    assert set(NEEDED) == set(Right)
    assert min(NEEDED.values()) > _Role.VIEWER


def is_store(node):
    return isinstance(node, ast.Call) and ast.unparse(node) in ("store()", "session.store()")


def calls(repository):
    """Yield each method of the store that pages name, and the source of the function around it."""
    package = repository / "gpuexplore"
    drawing = (package / "ui", package / "features", repository / "pages")
    for path in [path for folder in drawing for path in folder.rglob("*.py")]:
        for function in ast.parse(path.read_text(encoding="utf-8")).body:
            for node in ast.walk(function):
                if isinstance(node, ast.Name) and node.id == "import_runs":
                    yield node.id, ast.unparse(function)
                elif isinstance(node, ast.Attribute) and is_store(node.value):
                    yield node.attr, ast.unparse(function)


def test_every_write_of_a_page_is_in_the_table_and_asks_for_its_right(repository):
    found = list(calls(repository))

    assert {name for name, _ in found} >= {"submit", "submit_all", "import_runs"}
    assert {name for name, _ in found} - RIGHTS.keys() - OWN - ROOMS - READS == set()
    for name, source in found:
        if name in RIGHTS and not name.startswith("set_own"):  # these are handed to `_save`, which asks
            assert f"check(Right.{RIGHTS[name].name})" in source, name
        if name in {"describe", "delete_run", "restore_run", "request_cancel"}:
            assert "admin=is_admin()" in source, name


@pytest.fixture
def viewer(monkeypatch):
    monkeypatch.setenv("GPUEXPLORE_MEMBERS", "ada")


def test_a_viewer_measures_nothing(page, viewer, store):
    app = page("benchmark", op="matmul", size="64", dtype="fp32", impl="numpy")
    next(button for button in app.button if button.label.startswith("Run 1")).click().run()

    assert "You cannot measure: that is for members" in texts(app.error)
    assert store.history() == ()


def test_a_viewer_starts_no_activity(page, viewer, store):
    app = page("timing-mistakes", mistake="first-call")
    for button in [button for button in app.button if button.label.startswith("Reproduce")][:1]:
        button.click().run()

    assert "You cannot measure: that is for members" in texts(app.error)
    assert store.queue_length() == 0


def test_a_viewer_saves_no_peak(page, viewer, store):
    app = page("devices")
    next(button for button in app.button if button.label.startswith("Save")).click().run()

    assert "You cannot save peaks and import runs: that is for members" in texts(app.error)


@pytest.mark.parametrize("query", [{}, {"key": "x"}, {"key": "ß"}, {"key": f"{KEY}x"}])
def test_the_instructors_view_is_not_for_everybody(page, monkeypatch, query):
    monkeypatch.setenv("GPUEXPLORE_LEADER_KEY", KEY)
    app = page("lessons", lesson="how-long", view="instructor", **query)

    assert not app.exception
    assert "You cannot see the instructor's view: that is for leaders" in texts(app.error)
    assert "learners in the last" not in texts(app.markdown)
    assert "key" not in app.query_params


def test_whoever_comes_by_the_leaders_link_leads_after_a_reload_too(page, monkeypatch):
    monkeypatch.setenv("GPUEXPLORE_LEADER_KEY", KEY)
    first = page("lessons", lesson="how-long", view="instructor", key=KEY)
    again = page("lessons", lesson="how-long", view="instructor")
    other = page("lessons", owner="another browser", lesson="how-long", view="instructor")

    assert "learners in the last" in texts(first.markdown)
    assert "key" not in first.query_params
    assert "learners in the last" in texts(again.markdown)
    assert "learners in the last" not in texts(other.markdown)
    monkeypatch.setenv("GPUEXPLORE_LEADER_KEY", f"{KEY}-new")
    assert "learners in the last" not in texts(page("lessons", lesson="how-long", view="instructor").markdown)


def test_a_key_that_can_be_guessed_opens_nothing(page, monkeypatch):
    monkeypatch.setenv("GPUEXPLORE_LEADER_KEY", "short")

    assert "is for leaders" in texts(page("lessons", lesson="how-long", view="instructor", key="short").error)
