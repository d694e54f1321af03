"""The tools of commands: exit codes, arguments, and output in JSON, columns and progress, on streams as found."""

import codecs
import io
import json
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from gpuexplore.core import Case, InvalidInput, Result, Status, format_seconds, in_one_unit, require
from gpuexplore.hardware import readings

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_UNUSABLE = 2
FAILED = (Status.INCORRECT, Status.CRASHED, Status.TIMEOUT, Status.ERROR, Status.OUT_OF_MEMORY, Status.CANCELLED)


def print_json(value: Any) -> None:
    """Print `value` as indented, strict JSON."""
    print(
        json.dumps(
            value, indent=2, allow_nan=False, ensure_ascii=not (sys.stdout.encoding or "").lower().startswith("utf")
        )
    )


def say_readings(names: Iterable[str]) -> None:
    """Say how names of GPUs that leave something open were read."""
    for reading in readings(names):
        say(f"gpuexplore: {reading}")


def print_columns(rows: Sequence[Sequence[str]], *, one_unit: bool = True) -> None:
    """Print `rows`, the first of them the heading, in aligned columns.

    Args:
        one_unit: whether a column is in one unit; not where a batch of 131 kB stands above activations of 444 GB.
    """
    rows = in_one_unit(rows) if one_unit else rows
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def content_of(path: Path, most_bytes: int) -> bytes:
    """Return the content of a file, at most one byte more than `most_bytes`, so that a larger file is noticed.

    Raises:
        InvalidInput: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return file.read(most_bytes + 1)
    except OSError as error:
        raise InvalidInput.of("file", path.name, f"a readable file ({error.strerror})") from error


def check_writable(path: Path, suffixes: Iterable[str]) -> None:
    """Return when a file of one of these types can be written there: better before measuring than after.

    Raises:
        InvalidInput: another type, no such folder, or a file that cannot be written.
    """
    require(path.name.endswith(tuple(suffixes)), "file type", path.suffix or path.name, suffixes)
    require(path.parent.is_dir(), "folder", path.parent, "an existing one")
    existed = path.exists()
    try:
        path.open("ab").close()
    except OSError as error:
        raise InvalidInput.of("file", path, f"a writable file ({error.strerror})") from error
    if not existed:
        path.unlink()


def exit_code(results: Sequence[Result]) -> int:
    """Return 1 when a case failed or is incorrect, or when nothing was measured, which is said."""
    if any(result.status in FAILED for result in results):
        return EXIT_FAILED
    if any(result.measurement for result in results):
        return EXIT_OK
    reasons = "; ".join(dict.fromkeys(str(result.reason) for result in results))
    say(f"gpuexplore: nothing was measured: {reasons}")
    return EXIT_FAILED


class ProgressLine:
    """Says on standard error what is being measured; a single rewritten line on a terminal."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._measured: set[Case] = set()
        self._open: set[Case] = set()  # those of which only a first pass is known
        self._is_terminal = sys.stderr.isatty()

    def show(self, event: Case | Result) -> None:
        """Take an event of a run."""
        if isinstance(event, Case):
            if self._is_terminal and not self._is_passed:
                self._write(f"[{len(self._measured)}/{self._total}] {_point(event)}  ...")
            return
        was_passed = self._is_passed
        self._measured.add(event.case)
        (self._open.add if event.provisional else self._open.discard)(event.case)
        self._report(event, completes_pass=self._is_passed and not was_passed)

    @property
    def _is_passed(self) -> bool:
        return len(self._measured) == self._total

    def _report(self, result: Result, *, completes_pass: bool) -> None:
        outcome = f"{_point(result.case)}  {_outcome(result)}"
        refining = f"{self._total} of {self._total} measured, refining {len(self._open)}"
        done = len(self._measured) - len(self._open)
        if self._is_terminal and self._open:
            head = refining if self._is_passed else f"[{len(self._measured)}/{self._total}]"
            self._write(f"{head}  {outcome}")
        elif not result.provisional:
            self._write(f"[{done}/{self._total}] {outcome}", last=done == self._total)
        if completes_pass and len(self._open) > 1 and not self._is_terminal:
            self._write(refining)

    def _write(self, line: str, *, last: bool = False) -> None:
        end = "\n" if last or not self._is_terminal else ""
        with suppress(OSError):  # no one reads it; the measurement goes on
            print(f"\r\x1b[K{line}" if self._is_terminal else line, end=end, file=sys.stderr, flush=True)


def _point(case: Case) -> str:
    return f"{case.operation} {case.shape} {case.dtype} {case.implementation} on {case.device}"


def _outcome(result: Result) -> str:
    if result.measurement is None:
        return f"{result.status}: {result.reason}"
    return format_seconds(result.measurement.median_s)


def read_age(what: str, text: str) -> timedelta:
    """Return a typed span of time: `90d`, `12h`, `30m`.

    Raises:
        InvalidInput: it is none; names `what`, and what is accepted.
    """
    found = re.fullmatch(r"\s*(\d{1,6})\s*([mhdw])\s*", text, re.ASCII)
    if found:
        age = timedelta(**{{"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}[found[2]]: int(found[1])})
        if age <= timedelta(days=36_525):
            return age
    raise InvalidInput.of(what, text, "a number and a unit, like 90d, 12h, 30m or 4w, up to 100 years")


def utc_before(what: str, text: str, now: datetime | None = None) -> str:
    """Return the moment that long ago as the database writes it."""
    return ((now or datetime.now(UTC)) - read_age(what, text)).isoformat(timespec="microseconds")


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


def declare(parser: Any, options: Mapping[str, str | Mapping[str, Any]], default: str | None = None) -> None:
    """Declare arguments of a command, each by its names and what stands for its value: ``--gpu NAME``.

    Args:
        parser: or a group of its arguments.
        options: their help; or what `argparse` is given besides. An option without a value is a flag.
        default: of those whose help is all that is given.
    """
    for words, given in options.items():
        *names, last = words.split()
        settings: dict[str, Any] = {"help": given or None} if isinstance(given, str) else {**given}
        if not last.startswith("-"):
            settings["metavar"] = last
        elif isinstance(given, str):
            settings["action"] = "store_true"
        names += [last] if last.startswith("-") else []
        if "metavar" in settings and names[0].startswith("-"):
            settings.setdefault("default", default)
        parser.add_argument(*names, **settings)
