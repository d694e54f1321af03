"""Rooms in both databases: who leads, who is in, and what nobody else may do."""

from dataclasses import replace

import pytest

from gpuexplore.core.errors import InvalidInput, NotFound
from gpuexplore.rooms import MOST_PEOPLE, RoomState
from gpuexplore.store import rooms


@pytest.fixture
def opened(store):
    room, _ = store.open_room("ada", "GPU course", 2)
    return room


def test_a_room_is_found_by_its_code_until_its_time_is_over(store, clock):
    room, key = store.open_room("ada", "GPU course", 2)

    assert (room.title, room.state, len(key) >= 32) == ("GPU course", RoomState.OPEN, True)
    assert store.room_of(room.code) == room
    assert store.leads("ada", room)
    assert not store.leads("bob", room)
    clock.advance(2 * 3600 + 1)
    assert store.room_of(room.code) == replace(room, state=RoomState.ENDED)
    with pytest.raises(InvalidInput, match=r"is ended: it can no longer be joined"):
        store.join_room("bob", room, "Bob")


def test_a_code_that_another_room_has_is_drawn_again(store, monkeypatch):
    codes = iter(["KTRMWX", "KTRMWX", "CDFHJK"])
    monkeypatch.setattr(rooms, "new_code", lambda: next(codes))

    assert [store.open_room("ada", "", 1)[0].code for _ in range(2)] == ["KTRMWX", "CDFHJK"]


def test_more_rooms_than_anybody_leads_are_refused_until_one_is_closed(store, monkeypatch):
    monkeypatch.setattr(rooms, "MOST_OPEN", 2)
    first, _ = store.open_room("ada", "", 1)
    store.open_room("ada", "", 1)
    store.open_room("bob", "", 1)

    with pytest.raises(InvalidInput, match="you have 2 open rooms: close one first"):
        store.open_room("ada", "", 1)
    store.close_room("ada", first)
    assert store.open_room("ada", "", 1)[0].state is RoomState.OPEN


def test_whoever_comes_back_is_who_they_were(store, opened):
    ada = store.join_room("c1", opened, "Ada L")

    assert store.participant_of("c1", opened).number == ada.number
    assert (ada.name, ada.removed, ada.seen_s < 60) == ("Ada L", False, True)
    again = store.join_room("c1", opened, "Ada Lovelace")
    assert (again.number, again.name) == (ada.number, "Ada Lovelace")
    assert [each.name for each in store.participants(opened)] == ["Ada Lovelace"]
    assert store.participant_of("c2", opened) is None


@pytest.mark.parametrize("name", ["Ada", "ADA", "Ａｄａ"])  # noqa: RUF001 - letters of full width are meant
def test_a_name_is_taken_once(store, opened, name):
    store.join_room("c1", opened, "Ada")

    with pytest.raises(InvalidInput, match=f"name '{name}': expected a name that is not taken in this room"):
        store.join_room("c2", opened, name)
    other, _ = store.open_room("ada", "", 1)
    assert store.join_room("c2", other, name).name == name


def test_a_full_room_is_refused(store, opened, monkeypatch):
    monkeypatch.setattr(rooms, "MOST_PEOPLE", 2)
    for each in ("Ada", "Bob"):
        store.join_room(each, opened, each)

    with pytest.raises(InvalidInput, match="is full: 2 people have joined"):
        store.join_room("c", opened, "Cem")
    assert MOST_PEOPLE == 300


def test_who_was_removed_makes_room_until_a_program_has_joined_again_and_again(store, opened, monkeypatch):
    monkeypatch.setattr(rooms, "MOST_PEOPLE", 2)
    monkeypatch.setattr(rooms, "MOST_EVER", 4)
    people = [store.join_room(each, opened, each) for each in ("Ada", "Bob")]
    for number, name in enumerate(("Cem", "Dee")):
        store.remove_participant("ada", opened, people[number].number)
        people.append(store.join_room(name, opened, name))

    store.remove_participant("ada", opened, people[-1].number)
    with pytest.raises(InvalidInput, match="is full: 4 people have joined"):
        store.join_room("Eve", opened, "Eve")


def test_the_leader_renames_and_removes(store, opened):
    bob, cem = (store.join_room(each, opened, each) for each in ("Bob", "Cem"))
    store.rename_participant("ada", opened, bob.number, name="Robert")

    with pytest.raises(InvalidInput, match="a name that is not taken"):
        store.rename_participant("ada", opened, bob.number, name="cem")
    store.remove_participant("ada", opened, cem.number)
    assert [each.name for each in store.participants(opened)] == ["Robert"]
    assert store.participant_of("Cem", opened).removed
    with pytest.raises(InvalidInput, match="the leader removed you from this room"):
        store.join_room("Cem", opened, "Cem")
    store.leave_room("Cem", opened)
    with pytest.raises(InvalidInput, match="the leader removed you from this room"):
        store.join_room("Cem", opened, "Cem")
    assert store.join_room("other", opened, "Cem").name == "Cem"
    with pytest.raises(NotFound, match="this participant has left"):
        store.rename_participant("ada", opened, cem.number, name="Cem 2")


def test_what_a_leader_does_nobody_else_may(store, opened):
    bob = store.join_room("bob", opened, "Bob")
    tried = [
        lambda: store.close_room("bob", opened),
        lambda: store.delete_room("bob", opened),
        lambda: store.rename_participant("bob", opened, bob.number, name="King"),
        lambda: store.remove_participant("bob", opened, bob.number),
        lambda: store.new_leader_key("bob", opened),
        lambda: store.announce("bob", opened, message="No", link=""),
    ]
    for each in tried:
        with pytest.raises(InvalidInput, match="only its leader can do this"):
            each()
    assert store.room_of(opened.code) == opened
    assert [each.name for each in store.participants(opened)] == ["Bob"]


def test_a_leader_of_one_room_reaches_nobody_in_another(store, opened):
    theirs, _ = store.open_room("bob", "", 1)
    cem = store.join_room("cem", opened, "Cem")
    store.remove_participant("bob", theirs, cem.number)

    with pytest.raises(NotFound):
        store.rename_participant("bob", theirs, cem.number, name="Nobody")
    assert [each.name for each in store.participants(opened)] == ["Cem"]


def test_the_leaders_link_makes_another_device_a_leader(store):
    room, key = store.open_room("ada", "", 1)

    assert not store.take_lead("tablet", room, "wrong")
    assert not store.leads("tablet", room)
    assert store.take_lead("tablet", room, key)
    assert store.take_lead("tablet", room, key)  # a link that is followed twice
    assert store.leads("tablet", room)
    newer = store.new_leader_key("ada", room)
    assert not store.take_lead("phone", room, key)
    assert store.take_lead("phone", room, newer)


def test_a_closed_room_can_be_read_and_not_joined(store, opened):
    store.join_room("bob", opened, "Bob")
    store.close_room("ada", opened)

    assert store.room_of(opened.code).state is RoomState.CLOSED
    assert [each.name for each in store.participants(opened)] == ["Bob"]
    with pytest.raises(InvalidInput, match="is closed: it can no longer be joined"):
        store.join_room("cem", opened, "Cem")


def test_a_deleted_room_is_gone_with_all_that_was_in_it(store, opened):
    store.join_room("bob", opened, "Bob")
    store.delete_room("ada", opened)

    assert store.room_of(opened.code) is None
    assert (store.rooms_of("ada"), store.rooms_of("bob"), store.participants(opened)) == ((), (), ())
    with pytest.raises(InvalidInput, match="is deleted"):
        store.join_room("bob", opened, "Bob")


def test_rooms_that_somebody_leads_or_is_in_are_listed_the_newest_first(store):
    store.open_room("ada", "one", 1)
    joined, _ = store.open_room("bob", "two", 1)
    store.join_room("ada", joined, "Ada")
    left, _ = store.open_room("bob", "three", 1)
    store.join_room("ada", left, "Ada")
    store.leave_room("ada", left)

    assert [room.title for room in store.rooms_of("ada")] == ["two", "one"]


def test_those_who_are_here_are_noted_together(store, opened):
    numbers = [store.join_room(each, opened, each).number for each in ("Bob", "Cem", "Dan")]
    with store.writing() as connection:
        connection.exec_driver_sql("UPDATE participants SET seen_epoch_s = seen_epoch_s - 100")
    store.see_participants(numbers[:2])

    assert [each.seen_s < 50 for each in store.participants(opened)] == [True, True, False]


def test_what_the_leader_says_is_on_everybodys_page(store, opened):
    store.announce("ada", opened, message="Guess first, then measure", link="lessons?lesson=dtypes")

    found = store.room_of(opened.code)
    assert (found.message, found.link) == ("Guess first, then measure", "lessons?lesson=dtypes")
    store.announce("ada", opened, message="", link="")
    assert store.room_of(opened.code) == opened
