"""Cards of the place Learn: one for each lesson and page, whose figures are said to be what they are."""

import re
import tomllib
from pathlib import Path

import pytest

from gpuexplore.core.errors import NotFound
from gpuexplore.features.lessons.lesson import FOLDER
from gpuexplore.features.lessons.ui import cards as module
from gpuexplore.features.lessons.ui.cards import _card, cards
from gpuexplore.registry import FEATURES
from gpuexplore.ui.navigation import pages

WRITTEN = tomllib.loads(Path(module.__file__).with_name("cards.toml").read_text(encoding="utf-8"))
NEEDS = {"tensor": "tensors", "memory": "model", "model": "model"}


def needed(given):
    return {NEEDS[block["kind"]] for block in given.get("blocks", ()) if block["kind"] in NEEDS}


def test_every_lesson_that_ships_and_every_page_of_the_place_has_a_card():
    lessons = {path.stem for path in FOLDER.glob("*.md")}
    places = {page.name for page in pages().values() if page.place == "Learn"} - {"lessons"}

    assert lessons | places <= WRITTEN.keys()
    assert cards().keys() == {name for name, given in WRITTEN.items() if needed(given) <= {*FEATURES}}


@pytest.mark.parametrize("name", cards())
def test_card_has_a_chart_in_words_and_says_where_its_figures_come_from(name):
    card = cards()[name]
    given = WRITTEN[name]

    assert re.search(r'role="img" aria-label="[^"]*\d', card["picture"])
    assert "—" not in card["text"]
    assert card["source"].startswith("Recorded: ") == ("recordings" in given)
    predicted = any(block["kind"] in ("predict", "model") for block in given.get("blocks", ()))
    assert "Predicted" in card["source"] or not predicted or "source" in given


def test_a_card_whose_figures_are_not_there_is_left_out(monkeypatch):
    monkeypatch.setattr(module, "recordings", tuple)

    assert WRITTEN["how-long"].keys() >= {"recordings", "chart"}
    with pytest.raises(NotFound):
        _card(WRITTEN["how-long"])


def test_bars_are_as_long_as_their_figures():
    card = _card({"text": "x", "chart": {"a": "1", "b": "4", "c": "2"}, "focus": "c"})

    assert re.findall(r"--part:([\d.]+)", card["picture"]) == ["0.2500", "1.0000", "0.5000"]
    assert re.findall(r'class="focus"[^>]*><span>(\w)', card["picture"]) == ["c"]
    assert card["source"] == "Computed"
