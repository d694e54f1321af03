"""Reads a lesson: TOML between ``+++`` lines, steps at ``##`` headings, and in them text and fenced TOML blocks."""

import hashlib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from string import ascii_lowercase
from typing import Any

from gpuexplore.core import GpuExploreError, InvalidInput, check_characters, check_known, check_text, require
from gpuexplore.features.lessons.lesson.blocks import (
    BLOCKS,
    CANNOT_TELL,
    NO_IDEA,
    Block,
    CheckBlock,
    GuessBlock,
    InstructorBlock,
    KeepBlock,
    Prose,
    SayBlock,
    block_of,
)
from gpuexplore.features.lessons.lesson.expression import Expression, parse

LARGEST_BYTES = 200_000
BLOCK = re.compile(r"```(\S*)\s*")
OPTIONAL: dict[str, type] = {"rows": list, "borrows": list, "order": int}


@dataclass(frozen=True, slots=True)
class LessonStep:
    """One step of a lesson.

    Attributes:
        letter: its position, as links name it.
        parts: text and blocks in their order, each with the line it begins in.
    """

    letter: str
    title: str
    parts: tuple[tuple[int, Prose | Block], ...]

    def of(self, *kinds: type[Any]) -> tuple[Any, ...]:
        """Return its parts of these kinds, in order."""
        return tuple(part for _, part in self.parts if isinstance(part, kinds))

    @property
    def guesses(self) -> Mapping[str, GuessBlock]:
        """Its guesses by id."""
        return {guess.id: guess for guess in self.of(GuessBlock)}


@dataclass(frozen=True, slots=True)
class Lesson:
    """A lesson as it was written.

    Attributes:
        name: of its file, as links name it.
        question: what it answers, in a reader's words.
        minutes: it takes about.
        rows: of the notebooks it does right.
        borrows: steps of other lessons that come first, as ``lesson/letter``.
        digest: of its text: answers belong to one version of a lesson.
        order: its position among the lessons; None for an instructor's own.
    """

    name: str
    title: str
    question: str
    minutes: int
    rows: tuple[str, ...]
    steps: tuple[LessonStep, ...]
    digest: str
    borrows: tuple[str, ...] = ()
    order: int | None = None

    def step(self, letter: str) -> LessonStep:
        """Return the step of this letter.

        Raises:
            InvalidInput: there is none.
        """
        for step in self.steps:
            if step.letter == letter:
                return step
        raise InvalidInput.of(f"step of {self.name}", letter, (step.letter for step in self.steps))


def read_lesson(path: Path) -> Lesson:
    """Return the lesson in a file.

    Raises:
        InvalidInput: names the file, the line, what is wrong there and what is accepted.
    """
    try:
        if path.is_fifo():  # would wait for its writer
            raise InvalidInput.of(f"{path.name}: file", "a pipe", "files of text")
        with path.open("rb") as file:  # a device has no size that could be asked for
            written = file.read(LARGEST_BYTES + 1)
        require(
            len(written) <= LARGEST_BYTES,
            f"{path.name}: file",
            f"more than {LARGEST_BYTES:,} bytes",
            f"at most {LARGEST_BYTES:,}",
        )
        text = written.decode("utf-8-sig")  # editors on Windows begin a file with a byte order mark
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path.name}: cannot be read as UTF-8 text: {error}") from error
    return _parse_lesson(text, path.stem, path.name)


def _parse_lesson(text: str, name: str, file: str = "lesson") -> Lesson:
    """Return the lesson of a text.

    Raises:
        InvalidInput: as `read_lesson`.
    """
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        check_characters(f"{file}, line {number}", line)
    header, body = _front_matter(lines, file)
    steps = _steps(lines, body, file)
    if not steps and not header.get("borrows"):
        raise InvalidInput(f"{file}, line {body + 1}: no step: begin each with a line like ## How long does it take?")
    return Lesson(
        name=name,
        title=header["title"],
        question=header["question"],
        minutes=header["minutes"],
        rows=tuple(header.get("rows", ())),
        steps=steps,
        digest=hashlib.sha256(text.encode()).hexdigest()[:16],
        borrows=tuple(header.get("borrows", ())),
        order=header.get("order"),
    )


def _front_matter(lines: Sequence[str], file: str) -> tuple[Mapping[str, Any], int]:
    """Return the front matter and the index of the line behind it."""
    ends = [index for index, line in enumerate(lines) if line.strip() == "+++"][:2]
    if len(ends) != 2 or ends[0] != 0:
        raise InvalidInput(f"{file}, line 1: front matter between two lines of +++ is missing")
    found = _toml(lines[1 : ends[1]], file, 2)
    required: dict[str, type] = {"title": str, "question": str, "minutes": int}
    longest_minutes = 600
    value: object
    for key, value in found.items():
        kind = (required | OPTIONAL).get(key)
        if kind is None:
            raise InvalidInput.of(f"{file}, line 1: front matter", key, (*required, *OPTIONAL))
        if not isinstance(value, kind) or isinstance(value, bool):
            raise InvalidInput.of(f"{file}, line 1: {key}", value, f"a value of type {kind.__name__}")
        if isinstance(value, list) and not all(isinstance(part, str) for part in value):
            raise InvalidInput.of(f"{file}, line 1: {key}", value, "a list of texts")
        if isinstance(value, str):
            _check_heading(f"{file}, line 1: {key}", value)
    missing = [key for key in required if key not in found]
    if missing:
        raise InvalidInput(f"{file}, line 1: front matter lacks {', '.join(missing)}")
    require(
        1 <= found["minutes"] <= longest_minutes,
        f"{file}, line 1: minutes",
        found["minutes"],
        f"1 to {longest_minutes}",
    )
    if Prose.of(found["title"] + found["question"]).expressions:
        raise InvalidInput(f"{file}, line 1: title and question must not contain figures")
    return found, ends[1] + 1


def _check_heading(what: str, text: str) -> None:
    require(text.strip(), what, text, "a non-empty text")
    check_text(what, text)


def _steps(lines: Sequence[str], body: int, file: str) -> tuple[LessonStep, ...]:
    starts = []
    is_fenced = False
    for index in range(body, len(lines)):
        if lines[index].startswith("```"):
            is_fenced = not is_fenced
        elif lines[index].startswith("## ") and not is_fenced:
            starts.append(index)
    require(len(starts) <= len(ascii_lowercase), f"{file}: steps", len(starts), f"at most {len(ascii_lowercase)}")
    before = next(filter(None, map(str.strip, lines[body : starts[0] if starts else None])), "")
    if before:
        raise InvalidInput.of(f"{file}, line {body + 1}", before[:60], "a step first: a line like ## How long is it?")
    return tuple(
        _checked(
            LessonStep(letter, lines[start][3:].strip(), tuple(_parts(lines, start + 1, end, file))), file, start + 1
        )
        for letter, start, end in zip(ascii_lowercase, starts, [*starts[1:], len(lines)], strict=False)
    )


def _parts(lines: Sequence[str], start: int, end: int, file: str) -> Iterator[tuple[int, Prose | Block]]:
    """Yield text and blocks between two lines."""
    text_from = start
    index = start
    while index < end:
        opened = BLOCK.fullmatch(lines[index])
        if opened is None or not opened[1]:
            index += 1
            continue
        yield from _prose(lines, text_from, index, file)
        close = next((at for at in range(index + 1, end) if lines[at].strip() == "```"), None)
        if close is None:
            raise InvalidInput(
                f"{file}, line {index + 1}: the block {opened[1]} does not end: a line of ``` is missing"
            )
        check_known(f"{file}, line {index + 1}: block", opened[1], BLOCKS)
        table = _toml(lines[index + 1 : close], file, index + 2)
        with located(f"{file}, line {index + 1}"):
            block = block_of(opened[1], table)
        yield index + 1, block
        text_from = index = close + 1
    yield from _prose(lines, text_from, end, file)


def _prose(lines: Sequence[str], start: int, end: int, file: str) -> Iterator[tuple[int, Prose]]:
    text = "\n".join(lines[start:end]).strip()
    if text:
        with located(f"{file}, line {start + 1}"):
            prose = Prose.of(text)
        yield start + 1, prose


def _toml(lines: Sequence[str], file: str, line: int) -> dict[str, Any]:
    try:
        return tomllib.loads("\n".join(lines))
    except (ValueError, RecursionError) as error:  # ValueError: also of a number of thousands of digits
        raise InvalidInput(f"{file}, line {line}: no TOML: {error}") from error


@contextmanager
def located(where: str) -> Iterator[None]:
    """Say in an error where a lesson is wrong."""
    try:
        yield
    except GpuExploreError as error:
        raise InvalidInput(f"{where}: {error}") from error


def _checked(step: LessonStep, file: str, line: int) -> LessonStep:
    """Return `step`, whose blocks refer to what it has."""
    guesses = step.guesses
    if len(guesses) != len(step.of(GuessBlock)):
        raise InvalidInput(f"{file}, line {line}: two guesses of step {step.letter} have one id")
    for at, part in step.parts:
        with located(f"{file}, line {at}"):
            tuple(expressions(part, tuple(guesses)))
        if isinstance(part, CheckBlock) and part.guess:
            require(
                part.guess in guesses,
                f"{file}, line {at}: guess",
                part.guess,
                guesses or ("none: the step has no guess",),
            )
            with located(f"{file}, line {at}"):
                _check_options(part, guesses[part.guess])
    return step


def _check_options(check: CheckBlock, guess: GuessBlock) -> None:
    options = [*check.choice, *filter(None, [check.option])]
    if bool(guess.choices) != bool(options):
        kind = "choice or option" if guess.choices else "exact or near"
        raise InvalidInput(f"check of {guess.id}: the guess {'has' if guess.choices else 'has no'} choices: use {kind}")
    for option in options:
        check_known(f"option of {guess.id}", option, guess.choices)
    if NO_IDEA in guess.choices or (check.choice and CANNOT_TELL in check.choice):
        raise InvalidInput(f"check of {guess.id}: {NO_IDEA!r} and {CANNOT_TELL!r} are always there, and need no rule")


def expressions(part: Prose | Block, guesses: tuple[str, ...] = ()) -> Iterator[Expression]:
    """Yield the expressions of a part.

    Raises:
        InvalidInput: one of them is none.
    """
    if isinstance(part, Prose):
        yield from part.expressions
    elif isinstance(part, SayBlock | KeepBlock | InstructorBlock):
        yield from part.text.expressions
        if isinstance(part, SayBlock) and part.when:
            yield parse(part.when, guesses)
    elif isinstance(part, CheckBlock):
        for text in (part.exact, part.near, part.reach, *part.choice.values()):
            if text:
                yield parse(text, guesses)
