"""Leaves out of what a report says whose machine it was: errors of libraries hold paths, and paths hold names."""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from getpass import getuser
from pathlib import Path
from platform import node

from gpuexplore.features.selftest.suite.contract import Figure, Finding


def without_names_in(finding: Finding) -> Finding:
    """Return what a check found as it can be sent: see `without_names`."""
    return replace(finding, said=tuple(map(without_names, finding.said)), figures=tuple(map(_figure, finding.figures)))


def without_names(text: str) -> str:
    """Return `text` with `~` for the home folder, and without the user in paths and the host.

    Elsewhere a user's name stays: it may be a word of the text.
    """
    for pattern, told in _patterns():
        text = pattern.sub(told, text)
    return text


def _figure(figure: Figure) -> Figure:
    value = without_names(figure.value) if isinstance(figure.value, str) else figure.value
    return replace(figure, value=value, note=without_names(figure.note))


def _patterns() -> Iterator[tuple[re.Pattern[str], str]]:
    """Yield what is replaced, and by what."""
    home = Path("~").expanduser()
    for folder in dict.fromkeys((home, home.resolve())):
        if folder.is_absolute() and folder != Path(folder.anchor):
            yield re.compile(re.escape(str(folder)) + r"(?![\w.-])"), "~"
    with suppress(KeyError, OSError, ImportError):  # a number without a name, as in a container
        yield re.compile(rf"(?<=[/\\_-]){re.escape(getuser())}(?=[/\\])"), "<user>"
    host = node()
    for name in filter(None, dict.fromkeys((host, host.partition(".")[0]))):
        yield re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])"), "<host>"
