"""Lessons as text: their format, the arithmetic of their checks, and what becomes of a guess.

A lesson is a file that an instructor writes without Python: `*.md` in this folder, and an instructor's own in
`$GPUEXPLORE_HOME/lessons/`. `catalog` finds them, `format` reads them, `evidence` says what a step measures and
`quantities` names it, `expression` computes with it, `outcome` judges a guess by it.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from string import ascii_lowercase

from gpuexplore.core.errors import InvalidInput, check_known
from gpuexplore.features.lessons.lesson.format import Lesson, LessonStep, read_lesson
from gpuexplore.hardware import lessons_directory

FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Catalog:
    """Lessons that were found.

    Attributes:
        lessons: by name, in the order they are listed.
        unreadable: why a file is no lesson, by its name.
    """

    lessons: Mapping[str, Lesson]
    unreadable: Mapping[str, str]

    def lesson(self, name: str) -> Lesson:
        """Return the lesson called `name`.

        Raises:
            InvalidInput: there is none, or its file cannot be read; says why.
        """
        if name in self.unreadable:
            raise InvalidInput(self.unreadable[name])
        check_known("lesson", name, self.lessons)
        return self.lessons[name]


def catalog() -> Catalog:
    """Return the lessons there are now."""
    own: list[Path] = []
    with suppress(InvalidInput):  # no folder can be written: what needs one says so
        own = sorted(lessons_directory().glob("*.md"))[:200]
    return _read(tuple(_stamp(path) for path in (*FOLDER.glob("*.md"), *own)))


_Stamp = tuple[Path, int, int]


def lesson_at(path: Path) -> Lesson:
    """Return the lesson of a file anywhere, with the steps it borrows.

    Raises:
        InvalidInput: it is no lesson; names file and line, and what is accepted.
    """
    return _with_borrowed(read_lesson(path), catalog().lessons)


def _stamp(path: Path) -> _Stamp:
    try:
        found = path.stat()
    except OSError:  # it has gone meanwhile, or is a link to nowhere: reading it says so
        return path, 0, 0
    return path, found.st_mtime_ns, found.st_size


@lru_cache(maxsize=4)
def _read(stamps: tuple[_Stamp, ...]) -> Catalog:
    lessons: dict[str, Lesson] = {}
    unreadable: dict[str, str] = {}
    for path, *_ in stamps:
        if path.stem in lessons:
            unreadable[f"{path.parent.name}/{path.name}"] = (
                f"{path.name}: a lesson of gpuexplore has this name: give it another one"
            )
            continue
        try:
            lessons[path.stem] = read_lesson(path)
        except InvalidInput as error:
            unreadable[path.stem] = str(error)
    found: dict[str, Lesson] = {}
    for lesson in sorted(lessons.values(), key=lambda each: (each.order is None, each.order or 0, each.title)):
        try:
            found[lesson.name] = _with_borrowed(lesson, lessons)
        except InvalidInput as error:
            unreadable[lesson.name] = str(error)
    return Catalog(found, unreadable)


def _with_borrowed(lesson: Lesson, lessons: Mapping[str, Lesson]) -> Lesson:
    steps: list[LessonStep] = []
    for borrowed in lesson.borrows:
        name, _, letter = borrowed.partition("/")
        if name not in lessons or lessons[name].borrows:
            accepted = [f"{other.name}/{step.letter}" for other in lessons.values() for step in other.steps[:1]]
            raise InvalidInput.of(f"{lesson.name}.md, line 1: borrows", borrowed, accepted)
        steps.append(lessons[name].step(letter))
    return replace(lesson, steps=_with_letters([*steps, *lesson.steps])) if steps else lesson


def _with_letters(steps: Sequence[LessonStep]) -> tuple[LessonStep, ...]:
    """Return steps with new letters, in this order."""
    return tuple(replace(step, letter=letter) for letter, step in zip(ascii_lowercase, steps, strict=False))
