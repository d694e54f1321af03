"""`gpuexplore room`: rooms opened, asked, messaged, shown, exported, closed and deleted from a terminal."""

import argparse
from collections.abc import Callable
from pathlib import Path

from gpuexplore.cli.output import EXIT_OK, declare, print_columns, print_json
from gpuexplore.cli.run_command import OWNER
from gpuexplore.core import InvalidInput, NotFound, require, whole_typed
from gpuexplore.features.lessons.lesson import catalog
from gpuexplore.features.workshop.goals import KINDS, goal_of
from gpuexplore.features.workshop.report import FORMATS, names_of
from gpuexplore.features.workshop.report.facts import RoomFacts, runs_of
from gpuexplore.rooms import (
    ALL_STEPS,
    LESSON,
    Room,
    read_code,
    read_hours,
    read_message,
    read_title,
    spoken,
)
from gpuexplore.store import Store, open_store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `room`."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions, instead of a list")
    declare(
        actions.add_parser("open", help="open a room, and print its code and the leader's link"),
        {
            "--title TEXT": "title of the room",
            "--hours N": {"default": "4", "help": "hours until the room ends (default: %(default)s)"},
            "--address URL": {
                "default": "http://127.0.0.1:8501",
                "help": "where the app is served (default: %(default)s)",
            },
            "--json": "print one JSON object",
        },
        default="",
    )
    shown = actions.add_parser("show", help="list the participants of a room")
    shown.add_argument("--json", action="store_true", help="print one JSON object")
    said = actions.add_parser("say", help="put a message on all participants' pages; an empty one removes it")
    declare(
        actions.add_parser("share", help="share of device time for a room, relative to other users"),
        {
            "code CODE": "",
            "weight N": "multiple of another user's share while both have queued runs: 30 for a class",
        },
    )
    declare(
        actions.add_parser("ask", help="set a goal, or open a step of a lesson"),
        {
            "code CODE": "",
            "kind KIND": f"{LESSON}, {', '.join(KINDS)}",
            "settings NAME=VALUE": {"nargs": "*", "help": "settings such as operation=matmul percent=50"},
        },
    )
    declare(
        actions.add_parser("export", help="write all answers and results to a file"),
        {
            "code CODE": "",
            "file FILE": f"its name ends with {' or '.join(FORMATS)}",
            "--anonymous": "without names",
        },
    )
    closed = actions.add_parser("close", help="close a room: it can be read, but not joined")
    deleted = actions.add_parser("delete", help="delete a room with all its data")
    for each in (shown, said, closed, deleted):
        each.add_argument("code", metavar="CODE")
    said.add_argument("message", metavar="TEXT")


def execute(arguments: argparse.Namespace) -> int:
    """List the rooms that were opened from a terminal, or do what is asked, and return the exit code."""
    actions: dict[str, Callable[[Store, Room, argparse.Namespace], int]] = {
        "show": _show,
        "say": _say,
        "ask": _ask,
        "share": _share,
        "export": _export,
        "close": _close,
        "delete": _delete,
    }
    with open_store() as store:
        if arguments.action is None:
            return _list(store, arguments)
        if arguments.action == "open":
            return _open(store, arguments)
        room = store.room_of(read_code(arguments.code))
        if room is None:
            raise NotFound(f"no room has the code {arguments.code!r}")
        return actions[arguments.action](store, room, arguments)


def _open(store: Store, arguments: argparse.Namespace) -> int:
    room, key = store.open_room(OWNER, read_title(arguments.title), read_hours(arguments.hours))
    address = f"{arguments.address.rstrip('/')}/rooms?room={room.code}"
    leader = f"{address}&lead={key}"
    if arguments.json:
        print_json({**_row(store, room), "address": address, "leader": leader})
        return EXIT_OK
    print(f"{spoken(room.code)}  open until {room.ends_utc[:16].replace('T', ' ')} UTC")
    print(f"to join: {address}")
    print(f"to lead (keep this link private): {leader}")
    return EXIT_OK


def _list(store: Store, arguments: argparse.Namespace) -> int:
    rows = [_row(store, room) for room in store.rooms_of(OWNER)]
    if arguments.json:
        print_json(rows)
    elif not rows:
        print("no room was opened from a terminal: gpuexplore room open --title 'GPU course'")
    else:
        print_columns(
            [
                ("code", "title", "state", "ends (UTC)", "people"),
                *(tuple(str(value) for value in row.values()) for row in rows),
            ]
        )
    return EXIT_OK


def _row(store: Store, room: Room) -> dict[str, object]:
    return {
        "code": room.code,
        "title": room.title,
        "state": str(room.state),
        "ends": room.ends_utc[:16].replace("T", " "),
        "people": len(store.participants(room)),
    }


def _show(store: Store, room: Room, arguments: argparse.Namespace) -> int:
    people = store.participants(room)
    if arguments.json:
        names = [{"name": each.name, "joined": each.joined_utc, "seen_s": each.seen_s} for each in people]
        print_json({**_row(store, room), "message": room.message, "participants": names})
        return EXIT_OK
    print(f"{spoken(room.code)}  {room.title}  {room.state}".rstrip())
    for each in people:
        print(f"  {each.name}, joined at {each.joined_utc[11:16]} UTC")
    return EXIT_OK


def _say(store: Store, room: Room, arguments: argparse.Namespace) -> int:
    store.announce(OWNER, room, message=read_message(arguments.message), link=room.link)
    print(f"Message of {spoken(room.code)}: {read_message(arguments.message) or 'none'}")
    return EXIT_OK


def _share(store: Store, room: Room, arguments: argparse.Namespace) -> int:
    weight = whole_typed("weight", arguments.weight, 100)
    store.set_weight(room, weight)
    print(f"{spoken(room.code)} gets {weight} times the device time of one user while others wait too")
    return EXIT_OK


def _ask(store: Store, room: Room, arguments: argparse.Namespace) -> int:
    for text in arguments.settings:
        require("=" in text, "setting", text, "NAME=VALUE")
    settings = dict(text.split("=", 1) for text in arguments.settings)
    if arguments.kind == LESSON:
        lesson = catalog().lesson(settings.get("lesson", ""))
        letter = settings.get("step", lesson.steps[0].letter)
        settings = {"lesson": lesson.name, "step": letter if letter == ALL_STEPS else lesson.step(letter).letter}
        sentence = f"{lesson.title}, step {letter}"
    else:
        goal = goal_of(arguments.kind, settings)
        settings = dict(goal.settings)
        sentence = goal.sentence
    store.add_task(OWNER, room, kind=arguments.kind, settings=settings)
    print(f"Task of {spoken(room.code)}: {sentence}")
    return EXIT_OK


def _export(store: Store, room: Room, arguments: argparse.Namespace) -> int:
    path = Path(arguments.file)
    if path.suffix not in FORMATS:
        raise InvalidInput.of("file", arguments.file, f"names that end with {' or '.join(FORMATS)}")
    facts = RoomFacts(
        room,
        store.participants(room),
        store.tasks_of_room(room),
        store.guesses_of_room(room),
        store.answers_of_room(room),
        tuple(runs_of(store.runs_of_room(room), store.results_of_runs).values()),
    )
    try:
        path.write_bytes(FORMATS[path.suffix].write(facts, names_of(facts, anonymous=arguments.anonymous)))
    except OSError as error:
        raise InvalidInput.of("file", arguments.file, f"writable files ({error.strerror})") from error
    print(f"{spoken(room.code)} is written to {path}")
    return EXIT_OK


def _close(store: Store, room: Room, _: argparse.Namespace) -> int:
    store.close_room(OWNER, room)
    print(f"{spoken(room.code)} is closed")
    return EXIT_OK


def _delete(store: Store, room: Room, _: argparse.Namespace) -> int:
    store.delete_room(OWNER, room)
    print(f"{spoken(room.code)} is deleted, with all its data")
    return EXIT_OK
