"""What a room is asked to do and what comes of it, in both databases."""

import pytest

from gpuexplore.core.errors import InvalidInput, NotFound
from gpuexplore.rooms import ALL_STEPS, LESSON
from gpuexplore.store import entries, room_tasks


@pytest.fixture
def room(store):
    return store.open_room("ada", "GPU course", 2)[0]


@pytest.fixture
def bob(store, room):
    return store.join_room("bob", room, "Bob")


def task_in(store, room, **settings):
    return store.add_task("ada", room, kind="share", settings=settings)


def test_a_task_is_at_hand_for_everybody_until_another_follows(store, room, bob):
    first = task_in(store, room, operation="matmul")
    second = store.add_task("ada", room, kind=LESSON, settings={"lesson": "dtypes", "step": ALL_STEPS})

    assert [task.number for task in store.tasks_of_room(room)] == [first, second]
    assert next(task.settings for _, task in store.tasks_followed("bob")) == {"operation": "matmul"}
    assert store.tasks_followed("eve") == ()


def test_whoever_does_not_lead_gives_and_changes_no_task(store, room, bob):
    number = task_in(store, room)

    for act in (
        lambda: store.add_task("bob", room, kind="share", settings={}),
        lambda: store.mark_task("bob", room, number, marks={"revealed": True}),
        lambda: store.time_task("bob", room, number, left_s=60.0),
        lambda: store.show_names("bob", room, shown=True),
    ):
        with pytest.raises(InvalidInput, match="only its leader can do this"):
            act()
    (task,) = store.tasks_of_room(room)
    assert task.takes_answers
    assert not store.room_of(room.code).names_shown


def test_a_leader_changes_no_task_of_another_room(store, room):
    number = task_in(store, room)
    other, _ = store.open_room("eve", "", 1)

    store.mark_task("eve", other, number, marks={"revealed": True})

    assert not store.tasks_of_room(room)[0].revealed


def test_the_last_guess_counts_until_the_task_is_frozen_revealed_or_out_of_time(store, room, bob):
    number = task_in(store, room)
    for guess in (1e-3, 2e-3):
        store.give_guess("bob", room, number, guess=guess)

    assert [(each.participant, each.guess) for each in store.guesses_of_room(room)] == [(bob.number, 2e-3)]
    for shut, opened in (
        (lambda: store.mark_task("ada", room, number, marks={"frozen": True}), {"frozen": False}),
        (lambda: store.mark_task("ada", room, number, marks={"revealed": True}), {"revealed": False}),
        (lambda: store.time_task("ada", room, number, left_s=0.0), None),
    ):
        shut()
        with pytest.raises(InvalidInput, match="no longer takes answers"):
            store.give_guess("bob", room, number, guess=3e-3)
        if opened is not None:
            store.mark_task("ada", room, number, marks=opened)
    store.time_task("ada", room, number, left_s=60.0)
    store.give_guess("bob", room, number, guess=4e-3)
    assert [each.guess for each in store.guesses_of_room(room)] == [4e-3]
    assert 0 < store.tasks_of_room(room)[0].left_s <= 60


def test_who_is_not_in_the_room_guesses_nothing_there(store, room, bob):
    number = task_in(store, room)
    other, _ = store.open_room("ada", "", 1)
    store.join_room("bob", other, "Bob")

    with pytest.raises(InvalidInput, match="join it first"):
        store.give_guess("eve", room, number, guess=1.0)
    with pytest.raises(NotFound, match="no longer exists"):
        store.give_guess("bob", other, number, guess=1.0)
    store.remove_participant("ada", room, bob.number)
    with pytest.raises(InvalidInput, match="join it first"):
        store.give_guess("bob", room, number, guess=1.0)


def test_a_room_has_no_end_of_tasks(store, room, monkeypatch):
    monkeypatch.setattr(room_tasks, "MOST_TASKS", 1)
    task_in(store, room)

    with pytest.raises(InvalidInput, match="has had the maximum of 1 tasks"):
        task_in(store, room)


def test_a_closed_room_is_asked_nothing_more(store, room, bob):
    number = task_in(store, room)
    store.close_room("ada", room)

    with pytest.raises(InvalidInput, match="is closed"):
        task_in(store, room)
    with pytest.raises(InvalidInput, match="is closed"):
        store.give_guess("bob", room, number, guess=1.0)
    assert store.tasks_followed("bob") == ()


def test_results_are_of_those_who_are_in_since_they_are(store, room, experiment, measured):
    case = next(iter(experiment.cases()))
    ids = {}

    def run_of(owner, at):
        ids[at] = store.record(experiment, owner, results=[measured(case)], origin="laptop" if at == "bob" else None)

    run_of("bob", "before")
    bob = store.join_room("bob", room, "Bob")
    run_of("bob", "bob")
    run_of("ada", "leader")
    run_of("eve", "stranger")
    found = store.runs_of_room(room)

    assert [(each.run_id, each.origin, [who for who, _ in each.asked], each.results) for each in found] == [
        (ids["bob"], "laptop", [bob.number], 1),
        (ids["leader"], None, [None], 1),
    ]
    assert {run_id: len(of) for run_id, of in store.results_of_runs([ids["bob"]]).items()} == {ids["bob"]: 1}
    store.close_room("ada", room)
    run_of("bob", "after")
    assert store.runs_of_room(store.room_of(room.code)) == found


def test_a_run_is_of_everybody_in_the_room_who_asked_for_it(store, room, bob, experiment):
    carl = store.join_room("carl", room, "Carl")
    run_id = store.ask(experiment, "bob")
    assert {store.ask(experiment, owner) for owner in ("carl", "eve", "ada")} == {run_id}

    (found,) = store.runs_of_room(room)
    assert (found.run_id, [who for who, _ in found.asked]) == (run_id, [bob.number, carl.number, None])


def test_answers_to_lessons_are_of_those_who_are_in(store, room, bob):
    for owner in ("bob", "eve"):
        store.add_answer(owner, ("dtypes", "d1", "A"), guesses={"faster": "2"}, runs=[])

    ((participant, answer),) = store.answers_of_room(room)
    assert (participant, answer.step, answer.guesses) == (bob.number, "A", {"faster": "2"})


def test_one_visitor_does_not_fill_the_database_with_tries(store, monkeypatch):
    monkeypatch.setattr(entries, "MOST_TRIES", 2)
    place = ("dtypes", "d1", "A")
    for _ in range(2):
        store.add_answer("bob", place, guesses={}, runs=[])

    with pytest.raises(InvalidInput, match="at most 2 tries are allowed per step"):
        store.add_answer("bob", place, guesses={}, runs=[])
    assert store.add_answer("bob", ("dtypes", "d1", "B"), guesses={}, runs=[]) > 0


def test_a_deleted_room_takes_tasks_and_guesses_with_it(store, room, bob):
    number = task_in(store, room)
    store.give_guess("bob", room, number, guess=1.0)
    store.delete_room("ada", room)

    assert (store.tasks_of_room(room), store.guesses_of_room(room)) == ((), ())
