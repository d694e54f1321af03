"""The recipes of CONTRIBUTING.md, read and followed: files to write, changes of files, commands to run."""

import re
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).resolve().parents[2] / "CONTRIBUTING.md"
_STEP = re.compile(r"(?:`(?P<path>[\w./-]+\.\w+)`:\n\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```", re.M | re.S)
_FIRST = re.compile(r"^First, \[[\w ]+\]\(#([\w-]+)\)", re.M)


@dataclass(frozen=True)
class Step:
    """One block of a recipe: the text of a file, a change of a file, or commands."""

    language: str
    text: str
    path: str | None


@dataclass(frozen=True)
class Recipe:
    """What stands under a heading that begins with Add."""

    name: str
    steps: tuple[Step, ...]
    first: str | None

    @property
    def anchor(self):
        return self.name.lower().replace(" ", "-")


def recipes():
    """Return every recipe by the anchor of its heading."""
    sections = re.findall(r"^## (Add .+?)\n(.*?)(?=^## |\Z)", FILE.read_text(encoding="utf-8"), re.M | re.S)
    found = [Recipe(name, _steps(text), next(iter(_FIRST.findall(text)), None)) for name, text in sections]
    return {recipe.anchor: recipe for recipe in found}


def _steps(text):
    """Return the blocks in order; a change below another one is of the same file."""
    path, found = None, []
    for match in _STEP.finditer(text):
        path = match["path"] or path
        found.append(Step(match["language"], match["text"], None if match["language"] == "sh" else path))
    return tuple(found)


def created(recipe):
    """Return the files a recipe writes."""
    return [step.path for step in recipe.steps if step.language not in ("diff", "sh")]


def follow(step, tree):
    """Write or change the file of `step` in `tree`."""
    path = tree / step.path
    if step.language != "diff":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(step.text, encoding="utf-8")
        return
    with path.open(encoding="utf-8", newline="") as file:  # a table in CSV keeps its line ends
        text = file.read()
    end = "\r\n" if "\r\n" in text else "\n"
    path.write_text(changed(text, step.text.replace("\n", end), end), encoding="utf-8", newline="")


def changed(text, diff, end="\n"):
    """Return `text` after a change whose lines stand together in it; new lines alone go to its end."""
    lines, change = text.split(end), diff.removesuffix(end).split(end)
    before, after = ([line[1:] for line in change if line[:1] not in sign] for sign in ("+", "-"))
    if not before:
        return end.join([*lines[:-1], *after, lines[-1]])
    places = [place for place in range(len(lines)) if lines[place : place + len(before)] == before]
    assert len(places) == 1, f"stands {len(places)} times in the file, not once:\n{end.join(before)}"
    return end.join([*lines[: places[0]], *after, *lines[places[0] + len(before) :]])
