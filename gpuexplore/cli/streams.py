"""Standard output and error as a command may find them: closed, full, or of a terminal that has few signs."""

import codecs
import io
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

SPELLINGS: Mapping[str, str] = {  # units and numbers must not lose their sense
    "µ": "u",
    "×": "x",
    "·": ".",
    "²": "2",
    "±": "+-",
    "–": "-",
    "—": "-",
    "→": "->",
    "…": "...",
    "’": "'",
}


def prepare_streams() -> None:
    """Have every sign printed, spelled out where the terminal lacks it, and nothing else opened as a closed stream."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:  # closed: a database would get that number, and what is printed
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest number that is free is this one
    codecs.register_error("gpuexplore.spelled", _spell)
    sys.stdout, sys.stderr = (
        stream or io.TextIOWrapper(io.BufferedWriter(io.FileIO(os.devnull, "w")), encoding="utf-8")
        for stream in (sys.stdout, sys.stderr)
    )
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="gpuexplore.spelled")


def say(text: str) -> None:
    """Print a line on standard error, if it can be."""
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def give_up_unwritable() -> None:
    """Let what could not be written to a closed pipe or a full disk go: Python would try again when it ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError), Path(os.devnull).open("w") as nothing:
                os.dup2(nothing.fileno(), stream.fileno())


def _spell(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    signs = error.object[error.start : error.end]
    return "".join(SPELLINGS.get(sign, "?") for sign in signs), error.end
