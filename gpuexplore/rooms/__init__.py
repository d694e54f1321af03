"""Rooms: a class that measures together, found by a code, without accounts. Rules that need no database."""

from gpuexplore.rooms.code import CODE_LENGTH, LETTERS, new_code, read_code, spoken
from gpuexplore.rooms.model import (
    ALL_STEPS,
    LESSON,
    MOST_EVER,
    MOST_PEOPLE,
    Participant,
    Room,
    RoomGuess,
    RoomState,
    RoomTask,
)
from gpuexplore.rooms.typed import (
    HOURS,
    LONGEST_MESSAGE,
    LONGEST_NAME,
    LONGEST_TITLE,
    name_key,
    read_hours,
    read_link,
    read_message,
    read_name,
    read_title,
    read_weight,
)
from gpuexplore.rooms.wrong_codes import HERE, WRONG_CODES, WrongCodes

__all__ = [
    "ALL_STEPS",
    "CODE_LENGTH",
    "HERE",
    "HOURS",
    "LESSON",
    "LETTERS",
    "LONGEST_MESSAGE",
    "LONGEST_NAME",
    "LONGEST_TITLE",
    "MOST_EVER",
    "MOST_PEOPLE",
    "WRONG_CODES",
    "Participant",
    "Room",
    "RoomGuess",
    "RoomState",
    "RoomTask",
    "WrongCodes",
    "name_key",
    "new_code",
    "read_code",
    "read_hours",
    "read_link",
    "read_message",
    "read_name",
    "read_title",
    "read_weight",
    "spoken",
]
