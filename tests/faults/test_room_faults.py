"""A class in a room while servers die, the database is away, browsers sleep and the leader is gone: no answer is lost.

Browsers without a screen fill in the pages' own forms; each fault comes three times.
"""

import asyncio
import signal
import time

import pytest
from sqlalchemy import update

from benchmarks.room import GUESS, LEADER, Participant
from gpuexplore.core.model import RunState
from gpuexplore.features.workshop.report.facts import RoomFacts, State, runs_of, standings
from gpuexplore.store.tables import PARTICIPANTS
from tests.faults.conftest import ends, experiment, holder, is_measuring, wait_until
from tests.faults.test_database_faults import locked
from tests.faults.test_web_faults import serve  # noqa: F401  # a fixture

pytestmark = pytest.mark.parametrize("attempt", range(3))
CLASS = 5


@pytest.fixture
def room(store):
    return store.open_room(LEADER, "A class", 4)[0]


def query_of(room, **more):
    return "&".join([f"room={room.code}", *(f"{name}={value}" for name, value in more.items())])


async def joined(server, room, owner):
    """Open the door as a browser with this cookie and join by the form; return the open page."""
    person = Participant(server.url, "rooms", query_of(room), owner)
    await person.open()
    await person.until_there("Your name", "Join")
    await person.fill_in("Your name", owner, "Join")
    await person.until_there("Rename")
    return person


async def guessed(person, text):
    await person.until_there("Your guess", "Guess")
    await person.fill_in("Your guess", text, "Guess")


async def until(condition, within_s=30.0):
    end_s = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end_s
        await asyncio.sleep(0.05)


async def reopened(server, room, owner):
    """Open the page as a browser that was here before, and wait until it shows who that was and that they guessed."""
    page = Participant(server.url, "rooms", query_of(room), owner)
    await page.open()
    await page.until_there("Rename", "Guess again")
    await page.close()


def test_a_web_server_that_is_killed_during_a_step_loses_no_guess(store, serve, room, attempt):  # noqa: F811
    server = serve()
    number = store.add_task(LEADER, room, kind="guess", settings=GUESS)

    async def lesson():
        people = [await joined(server, room, f"person{place}") for place in range(CLASS)]
        for place, person in enumerate(people):
            await guessed(person, f"{place + 1} ms")
        await until(lambda: len(store.guesses_of_room(room)) == CLASS)
        server.send_signal(signal.SIGKILL)
        server.wait(10)
        another = await asyncio.to_thread(serve)
        for place in range(CLASS):
            await reopened(another, room, f"person{place}")

    asyncio.run(lesson())
    assert sorted(guess.guess for guess in store.guesses_of_room(room)) == pytest.approx([1e-3, 2e-3, 3e-3, 4e-3, 5e-3])
    assert {guess.task for guess in store.guesses_of_room(room)} == {number}


def test_a_supervisor_that_is_killed_in_mid_run_loses_no_result(store, serve, room, attempt):  # noqa: F811
    serve()
    wait_until(lambda: holder() is not None)
    store.join_room("ada", room, "Ada")
    store.add_task(LEADER, room, kind="error", settings={"bound": "0.5"})
    run_id = store.submit(experiment(10, budget_s=0.1), "ada")
    wait_until(lambda: is_measuring(store, run_id, done=1))
    holder().process().kill()

    assert ends(store, run_id, 60).state is RunState.DONE
    runs = tuple(runs_of(store.runs_of_room(room), store.results_of_runs).values())
    assert [len(run.analysis.results) for run in runs] == [10]
    facts = RoomFacts(room, store.participants(room), store.tasks_of_room(room), (), (), runs)
    (column,) = facts.columns
    assert [standing.state for standing in standings(facts, column).values()] == [State.DONE]


def test_a_database_that_is_away_for_twenty_seconds_loses_no_guess(store, serve, home, room, attempt):  # noqa: F811
    server = serve()
    store.add_task(LEADER, room, kind="guess", settings=GUESS)

    async def lesson():
        people = [await joined(server, room, f"person{place}") for place in range(CLASS)]
        with locked(home / "gpuexplore.sqlite3"):
            for person in people:
                await guessed(person, "2 ms")
            await asyncio.sleep(20)
        await until(lambda: len(store.guesses_of_room(room)) == CLASS)
        for person in people:
            await person.close()

    asyncio.run(lesson())
    assert {guess.guess for guess in store.guesses_of_room(room)} == {2e-3}


def test_a_browser_that_slept_for_ten_minutes_is_who_it_was(store, serve, room, attempt):  # noqa: F811
    server = serve()
    store.add_task(LEADER, room, kind="guess", settings=GUESS)

    async def lesson():
        person = await joined(server, room, "ada")
        await guessed(person, "2 ms")
        await until(lambda: len(store.guesses_of_room(room)) == 1)
        await person.close()
        with store.writing() as connection:
            connection.execute(update(PARTICIPANTS).values(seen_epoch_s=PARTICIPANTS.c.seen_epoch_s - 600))
        assert store.participants(room)[0].seen_s > 590
        await reopened(server, room, "ada")

    asyncio.run(lesson())
    assert [person.name for person in store.participants(room)] == ["ada"]


def test_a_second_device_takes_over_with_the_leaders_link(store, serve, attempt):  # noqa: F811
    server = serve()
    room, key = store.open_room(LEADER, "A class", 4)
    store.add_task(LEADER, room, kind="guess", settings=GUESS)

    async def lesson():
        first = Participant(server.url, "rooms", query_of(room), LEADER)
        await first.open()
        await first.close()
        second = Participant(server.url, "rooms", query_of(room, lead=key), "tablet")
        await second.open()
        await second.until_there("Reveal")
        await second.press("Reveal")
        await until(lambda: store.tasks_of_room(room)[0].revealed)
        assert key not in second.query
        await second.close()

    asyncio.run(lesson())
    assert store.leads("tablet", room)
