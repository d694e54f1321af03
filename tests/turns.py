"""Of tests that resemble each other `make test` runs some, in turns; `make check T=...` runs all of a room.

Which have their turn, the list of changes decides, so that every change has others.
"""

from pathlib import Path

import pytest

CHANGES = (Path(__file__).resolve().parent.parent / "CHANGELOG.md").read_bytes()


def in_turns(parameters, *, run, changes=CHANGES):
    """Return `parameters`, of which all but `run` are marked to be left out this time."""
    first = sum(changes)
    turn = {(first + each) % len(parameters) for each in range(min(run, len(parameters)))}
    return [each if at in turn else _left_out(each) for at, each in enumerate(parameters)]


def _left_out(parameter):
    if isinstance(parameter, type(pytest.param())):
        return pytest.param(*parameter.values, marks=[*parameter.marks, pytest.mark.turns], id=parameter.id)
    return pytest.param(parameter, marks=pytest.mark.turns)


def left_out(parameter):
    """Return whether one of those that `in_turns` returned has no turn."""
    return isinstance(parameter, type(pytest.param())) and pytest.mark.turns.mark in [
        each.mark for each in parameter.marks
    ]
