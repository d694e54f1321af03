"""The page Rooms as its leader, somebody in it and a stranger see it."""

from html import escape
from types import SimpleNamespace

import pytest

from gpuexplore.core.model import RunState
from gpuexplore.features.lessons.lesson import catalog
from gpuexplore.features.lessons.lesson.evidence import tasks_of
from gpuexplore.features.lessons.ui.view import FOLLOWED
from gpuexplore.features.workshop.goals import KINDS, goal_of
from gpuexplore.features.workshop.ui import known
from gpuexplore.rooms import ALL_STEPS, LESSON, MOST_OF_ONE, _WrongCodes
from gpuexplore.ui.shared import Shared
from tests.analysis.made import device
from tests.pages.conftest import OWNER, compiler, home, page, store, texts

LEADER = "the one who leads"


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch):
    monkeypatch.setattr(known, "WRONG_CODES", _WrongCodes())
    monkeypatch.setattr(known, "note_presence", known._noting_presence())
    monkeypatch.setattr(known, "READERS", Shared(known.MOST_ROOMS))
    known.forget()


@pytest.fixture
def room(store):
    opened, _ = store.open_room(LEADER, "GPU *course*", 2)
    return opened


@pytest.fixture
def led(store):
    opened, _ = store.open_room(OWNER, "GPU *course*", 2)
    return opened


def pressed(app, label):
    """Press the only button with this label."""
    (button,) = [each for each in app.button if each.label == label]
    return button.click().run()


def typed(app, label, text):
    (field,) = [each for each in app.text_input if each.label == label]
    field.set_value(text)
    return app


def test_a_room_is_opened_and_shows_its_code(page, store):
    app = pressed(typed(page("rooms"), "Title", "GPU course"), "Open a room")

    (room,) = store.rooms_of(OWNER)
    assert not app.exception
    assert app.query_params["room"] == room.code
    assert f"# {room.code[:3]} {room.code[3:]}" in texts(app.markdown)
    assert "GPU course" in texts(app.header)
    assert "0 joined, 0 here" in texts(app.subheader)


def test_somebody_joins_by_the_code_and_a_name(page, store, room):
    app = pressed(typed(page("rooms"), "Code", f" {room.code[:3].lower()} {room.code[3:]}"), "Join")
    assert r"GPU \*course\*" in app.header[0].value
    app = pressed(typed(app, "Your name", "Ada <b>"), "Join")

    assert not app.exception
    assert [each.name for each in store.participants(room)] == ["Ada <b>"]
    assert r"You are **Ada \<b\>**. 1 person is in this room." in [each.value for each in app.markdown]
    assert "Messages and tasks of the leader appear here" in texts(app.markdown)


def test_what_the_leader_says_and_the_page_it_is_about_are_shown(page, store, room):
    store.join_room(OWNER, room, "Ada")
    store.announce(LEADER, room, message="Guess *first*", link="lessons?lesson=dtypes")
    app = page("rooms", room=room.code)

    assert r"### Guess \*first\*" in [each.value for each in app.markdown]
    (link,) = app.get("link_button")
    assert (link.proto.label, link.proto.url) == ("Open", "./lessons?lesson=dtypes")


def test_the_leader_says_something_to_everybody(page, store, led):
    app = typed(page("rooms", room=led.code), "Message on all pages", "Guess first")
    app = pressed(typed(app, "Link to a page (optional)", "https://lab/what-if?op=matmul"), "Show to all")

    assert not app.exception
    said = store.room_of(led.code)
    assert (said.message, said.link) == ("Guess first", "what-if?op=matmul")
    for link in ("https://evil.example/login", "rooms?room=KTRMWX&lead=secret"):  # nowhere else, and no key away
        app = pressed(typed(app, "Link to a page (optional)", link), "Show to all")
        assert "expected addresses of this app" in texts(app.error)
        assert store.room_of(led.code).link == "what-if?op=matmul"


def test_the_leader_renames_removes_and_closes(page, store, led):
    store.join_room("bob", led, "Bob")
    app = page("rooms", room=led.code)
    assert app.dataframe[0].value["Name"].tolist() == ["Bob"]
    app = pressed(typed(app, "New name", "Robert").run(), "Rename")
    assert [each.name for each in store.participants(led)] == ["Robert"]
    app = pressed(app, "Remove")
    assert store.participants(led) == ()
    app = pressed(app, "Close")
    assert "it can be read, but not joined" in texts(app.markdown)
    assert "Show to all" not in [button.label for button in app.button]


def test_a_room_is_deleted_only_with_a_tick(page, store, led):
    app = page("rooms", room=led.code)
    (button,) = [each for each in app.button if each.label == "Delete"]
    assert button.disabled
    app = app.checkbox[0].check().run()
    app = pressed(app, "Delete")

    assert store.room_of(led.code) is None
    assert "was deleted, with everything in it" in texts(app.info)
    assert "room" not in app.query_params


def test_who_is_in_a_room_that_is_deleted_has_tried_no_wrong_code(page, store, room):
    store.join_room(OWNER, room, "Ada")
    app = page("rooms", room=room.code)
    store.delete_room(LEADER, room)
    assert known.as_it_is_now(room) is None
    for _ in range(MOST_OF_ONE):
        assert known.as_it_is_now(room) is None

    app = app.run()  # drawn whole, as it is where the deletion is noticed between two looks at the database
    assert "was deleted, with everything in it" in texts(app.info)
    assert not app.error
    assert "no room has the code" in texts(page("rooms", room=room.code).error)


def test_who_was_removed_is_told_and_cannot_come_in(page, store, room):
    me = store.join_room(OWNER, room, "Ada")
    store.remove_participant(LEADER, room, me.number)
    app = page("rooms", room=room.code)

    assert "the leader of this room has removed you" in texts(app.error)
    assert not app.text_input


def test_a_stranger_sees_nobody_and_a_closed_room_has_no_door(page, store, room):
    store.join_room("bob", room, "Bob the secret")
    app = page("rooms", room=room.code)
    assert "Bob the secret" not in str(app)
    assert [each.label for each in app.text_input] == ["Your name"]
    wall = page("rooms", room=room.code, view="wall")
    assert [each.label for each in wall.text_input] == ["Your name"]
    assert "joined" not in texts(wall.markdown)
    store.close_room(LEADER, room)
    app = page("rooms", room=room.code)
    assert "is closed: it can no longer be joined" in texts(app.error)
    assert not app.text_input


def test_the_leaders_link_leads_and_leaves_the_address(page, store):
    room, key = store.open_room(LEADER, "", 2)
    app = page("rooms", room=room.code, lead=key)

    assert store.leads(OWNER, room)
    assert "lead" not in app.query_params
    assert "Show to all" in [button.label for button in app.button]
    wrong = page("rooms", room=room.code, lead="wrong")
    assert "this leader's link is invalid" in texts(wrong.error)


@pytest.mark.parametrize("code", ["ABC", "KTRMWX", "<script>", "x" * 150])
def test_a_code_of_no_room_is_a_sentence_with_the_ways_in(page, code):
    app = page("rooms", room=code)

    assert not app.exception
    assert "room" in texts(app.error)
    assert {"Join", "Open a room"} <= {button.label for button in app.button}


def test_whoever_tries_codes_is_kept_waiting(page):
    for _ in range(MOST_OF_ONE):
        known.WRONG_CODES.note(known.HERE)

    assert "60 wrong room codes were sent from your network address" in texts(page("rooms", room="KTRMWX").error)


def test_rooms_that_one_is_in_are_listed_the_newest_first(page, store, led, room):
    store.join_room(OWNER, room, "Ada")
    labels = [button.label for button in page("rooms").button]

    assert labels[-2:] == [f"{code[:3]} {code[3:]}" for code in (room.code, led.code)]


def test_those_who_look_are_written_down_together(monkeypatch):
    noted, now_s = [], [0.0]
    monkeypatch.setattr(known, "store", lambda: SimpleNamespace(see_participants=noted.append))
    monkeypatch.setattr(known, "monotonic", lambda: now_s[0])
    note = known._noting_presence()
    for moment_s, number in ((0.0, 1), (1.0, 2), (2.0, 3), (2.0, 2), (known.SEEN_EVERY_S, 4)):
        now_s[0] = moment_s
        note(number)

    assert noted == [{1}, {2, 3, 4}]


def chosen(app, label, value):
    (field,) = [each for each in app.selectbox if each.label == label]
    return field.set_value(value).run()


def asked(store, room, leader=LEADER):
    settings = {"operation": "matmul", "size": "512", "dtype": "fp32", "implementation": "torch"}
    return store.add_task(leader, room, kind="guess", settings=settings)


def test_the_leader_asks_for_every_kind_of_goal_and_what_cannot_be_set_is_not_given(page, store, led):
    app = chosen(page("rooms", room=led.code), "What", "error")
    app = pressed(typed(app, "Relative error below", "2"), "Set this task")
    assert "expected numbers between 0 and 1" in texts(app.error)
    assert store.tasks_of_room(led) == ()
    typed(app, "Relative error below", "1e-4")
    for kind in KINDS:
        app = pressed(chosen(app, "What", kind), "Set this task")
        assert not app.exception
        assert not app.error
        task = store.tasks_of_room(led)[-1]
        assert (task.kind, task.settings) == (kind, goal_of(kind, {}).settings)
        assert f"### {goal_of(kind, {}).sentence}" in texts(app.markdown)
    assert len(store.tasks_of_room(led)) == len(KINDS)


def test_the_leader_opens_step_after_step_and_lets_go(page, store, led):
    app = pressed(page("rooms", room=led.code), "Open its first step")
    (label,) = [button.label for button in app.button if button.label.startswith("Open step")]
    app = pressed(app, label)
    app = pressed(app, "Open all steps")

    assert [task.settings["step"] for task in store.tasks_of_room(led)] == ["a", "b", ALL_STEPS]


def test_the_leader_reveals_freezes_hides_and_gives_time(page, store, led):
    asked(store, led, OWNER)
    app = page("rooms", room=led.code)
    app = pressed(app, "Freeze")
    assert not store.tasks_of_room(led)[0].takes_answers
    app = pressed(app, "Open answers")
    assert store.tasks_of_room(led)[0].takes_answers
    app = pressed(pressed(app, "Reveal"), "Hide on the wall")
    (task,) = store.tasks_of_room(led)
    assert (task.revealed, task.hidden, task.takes_answers) == (True, True, False)
    app = pressed(pressed(app, "Take back"), "Give 5 min")
    (task,) = store.tasks_of_room(led)
    assert (task.revealed, task.takes_answers, task.left_s > 290) == (False, True, True)
    pressed(app, "No timer")
    assert store.tasks_of_room(led)[0].left_s is None


def test_somebody_guesses_and_learns_what_was_measured_once_it_is_revealed(page, store, room):
    number = asked(store, room)
    store.join_room(OWNER, room, "Ada")
    app = page("rooms", room=room.code)
    app = pressed(typed(app, "Your guess", "soon"), "Guess")
    assert "times above 0 with their unit" in texts(app.error)
    app = pressed(typed(app, "Your guess", "2 ms"), "Guess")

    assert "You guessed **2.00 ms**." in [each.value for each in app.markdown]
    assert [guess.guess for guess in store.guesses_of_room(room)] == [2e-3]
    (link,) = app.get("link_button")
    assert (link.proto.label, link.proto.url) == ("Measure", "./benchmark?op=matmul&dtype=fp32&size=512&impl=torch")
    store.mark_task(LEADER, room, number, marks={"revealed": True, "frozen": True})
    known.forget()
    app = page("rooms", room=room.code)
    assert "Answers are closed" in texts(app.markdown)
    assert "Guess" not in [button.label for button in app.button]


def test_a_participant_has_nothing_that_only_a_leader_may_do(page, store, room):
    asked(store, room)
    store.join_room(OWNER, room, "Ada")
    labels = {button.label for button in page("rooms", room=room.code).button}

    assert not labels & {"Reveal", "Freeze", "Give 1 min", "Set this task", "Close", "Delete", "CSV"}


def test_the_wall_shows_how_many_are_done_and_names_only_where_they_are_wanted(page, store, led):
    asked(store, led, OWNER)
    store.join_room("bob", led, "Bob <b>")
    store.give_guess("bob", led, store.tasks_of_room(led)[0].number, guess=1e-3)
    app = page("rooms", room=led.code, view="wall")

    assert not app.exception
    assert "How long does torch take for matmul of size 512 in fp32?" in texts(app.title)
    assert "**0 of 1 done**, 1 begun" in texts(app.markdown)
    for named in (False, True):
        store.show_names(OWNER, led, shown=named)
        known.forget()
        tiles = " ".join(each.proto.body for each in app.run().get("html"))
        assert ("Bob &lt;b&gt;" in tiles) is named
        assert 'class="begun"' in tiles


def test_a_lesson_shows_those_in_a_room_the_steps_that_are_open(page, store, room):
    store.join_room(OWNER, room, "Ada")
    FOLLOWED.forget()
    store.add_task(LEADER, room, kind=LESSON, settings={"lesson": "tour", "step": "a"})
    app = page("lessons", lesson="tour")
    assert "Followed together in room" in texts(app.markdown)
    assert [button.label for button in app.button if button.label == "Skip this step"] == []
    assert app.get("button_group")[-1].proto.options[-1].content == "a"
    store.add_task(LEADER, room, kind=LESSON, settings={"lesson": "tour", "step": ALL_STEPS})
    FOLLOWED.forget()
    assert "Skip this step" in [button.label for button in page("lessons", lesson="tour").button]


def test_the_steps_of_a_lesson_open_in_one_tab(page, store, room):
    store.join_room(OWNER, room, "Ada")
    for letter in ("a", "b"):
        store.add_task(LEADER, room, kind=LESSON, settings={"lesson": "tour", "step": letter})
        known.forget()
        (link,) = page("rooms", room=room.code).get("bidi_component")
        assert f"./lessons?lesson=tour&step={letter}" in str(link.proto)


@pytest.mark.parametrize(
    ("kind", "settings", "words", "place"),
    [
        (LESSON, {"lesson": "tour", "step": "b"}, "step b", "lessons?lesson=tour&step=b"),
        (LESSON, {"lesson": "how-long", "step": "a"}, "another lesson", "lessons?lesson=how-long&step=a"),
        (LESSON, {"lesson": "how-long", "step": ALL_STEPS}, "another lesson", "lessons?lesson=how-long"),
        ("error", {"bound": "1e-4"}, "another task", "rooms?room={code}"),
    ],
)
def test_a_lesson_leads_on_to_what_the_room_is_at(page, store, room, kind, settings, words, place):
    store.join_room(OWNER, room, "Ada")
    FOLLOWED.forget()
    store.add_task(LEADER, room, kind=LESSON, settings={"lesson": "tour", "step": "a"})
    assert page("lessons", lesson="tour", step="a").get("html") == []
    store.add_task(LEADER, room, kind=kind, settings=settings)
    FOLLOWED.forget()
    (link,) = page("lessons", lesson="tour", step="a").get("html")

    href = f"./{place.format(code=room.code)}"
    assert f'href="{escape(href)}" target="_self">The leader went on to {words}</a>' in link.proto.body


def test_a_step_whose_measurement_has_ended_is_done_on_the_wall_though_its_learner_went_on(page, store, led):
    store.join_room("bob", led, "Bob")
    lesson = catalog().lesson("how-long")
    store.add_task(OWNER, led, kind=LESSON, settings={"lesson": lesson.name, "step": "a"})
    work = tasks_of(lesson.step("a"), (device(memory_bytes=2**34),))[0].work
    run_id = store.submit(work, "bob")
    store.add_answer("bob", (lesson.name, lesson.digest, "a"), guesses={"seconds": "2"}, runs=[run_id])
    assert "**0 of 1 done**, 1 begun" in texts(page("rooms", room=led.code, view="wall").markdown)
    claim = store.claim("tests", {"cpu"})
    store.finish(claim, RunState.DONE)
    known.forget()

    assert "**1 of 1 done**, 0 begun" in texts(page("rooms", room=led.code, view="wall").markdown)
    assert store.answers_of("bob")[0].outcomes is not None
