"""Every implementation has a colour of its own, which nobody takes for another's."""

import re
import tomllib
from itertools import combinations
from math import dist

import pytest

from gpuexplore.charts.series import COLORS, color_of
from gpuexplore.operations import OPERATIONS

MODES = ("light", "dark")
VISIBLY = 25  # of CIE76: 2.3 is just noticeable side by side; lines are thin, and apart
WHITE = (0.9505, 1.0, 1.089)  # D65
TO_XYZ = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))


def linear(color):
    channels = (int(color[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return [channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4 for channel in channels]


def lab(color):
    """Return the place of a colour in CIELAB, in which a distance is what an eye sees of a difference."""
    xyz = [sum(weight * channel for weight, channel in zip(row, linear(color), strict=True)) for row in TO_XYZ]
    x, y, z = (
        t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116
        for t in (part / white for part, white in zip(xyz, WHITE, strict=True))
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def contrast(color, other):
    darker, lighter = sorted(
        sum(weight * channel for weight, channel in zip(TO_XYZ[1], linear(each), strict=True))
        for each in (color, other)
    )
    return (lighter + 0.05) / (darker + 0.05)


def test_every_implementation_has_a_colour_and_its_first_device_that_of_the_table():
    assert set(COLORS) == {
        implementation.name for operation in OPERATIONS.values() for implementation in operation.implementations
    }

    assert {name: tuple(shades(name, 0)) for name in COLORS} == dict(COLORS)


@pytest.mark.parametrize("mode", range(2), ids=MODES)
@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=list(OPERATIONS))
def test_any_two_implementations_of_an_operation_differ_visibly(operation, mode):
    names = [implementation.name for implementation in operation.implementations]
    near = [
        (name, other)
        for name, other in combinations(names, 2)
        if dist(lab(COLORS[name][mode]), lab(COLORS[other][mode])) < VISIBLY
    ]

    assert near == []


def shades(name, place):
    """Return the colours of an implementation's device in both modes."""
    return re.findall("#[0-9a-f]{6}", color_of(name, place)["expr"])


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("mode", range(2), ids=MODES)
def test_every_colour_stands_out_from_the_page(repository, mode, place):
    theme = tomllib.loads((repository / ".streamlit" / "config.toml").read_text(encoding="utf-8"))["theme"]
    background = theme[MODES[mode]]["backgroundColor"]

    assert {name for name in COLORS if contrast(shades(name, place)[mode], background) < 3} == set()


@pytest.mark.parametrize("mode", range(2), ids=MODES)
def test_a_second_device_of_an_implementation_differs_visibly_from_its_first(mode):
    assert {name for name in COLORS if dist(lab(shades(name, 0)[mode]), lab(shades(name, 1)[mode])) < 12} == set()


def test_a_distance_is_that_of_cielab():
    assert lab("#ffffff") == pytest.approx((100, 0, 0), abs=0.05)
    assert dist(lab("#ff0000"), lab("#00ff00")) == pytest.approx(170.6, abs=0.5)
