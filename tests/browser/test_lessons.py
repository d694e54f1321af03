"""Lessons as learners do them: the tour, answers that stay, one measurement for several, a training."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import tells

pytestmark = pytest.mark.browser

TOUR_STEPS = 10
GUESS = re.compile("^Time of one 1024")


def press(page, name):
    page.get_by_role("button", name=name).first.click()


def test_the_tour_is_offered_begun_and_kept_over_a_reload_and_others_use_its_measurement(visitor, address, store):
    page, other = visitor(), visitor()
    page.goto(f"{address}/benchmark")
    press(page, "Take the tour")
    tells(page, "A guess in seconds")
    page.get_by_role("textbox", name=GUESS).fill("20")
    page.keyboard.press("Enter")  # the keyboard alone suffices
    tells(page, "you guessed")
    tells(page, "Keep:")
    tells(page, f"1 of {TOUR_STEPS} steps")
    (measured, *_) = runs = store.history(limit=1000)

    other.goto(f"{address}/lessons?lesson=tour&step=a")
    other.get_by_role("textbox", name=GUESS).fill("20")
    is_offered = _is_undisturbed(store.load(measured.id))
    press(other, re.compile("Use the measurement of" if is_offered else "Run, about"))
    tells(other, "Keep:")
    assert (len(store.history(limit=1000)) == len(runs)) == is_offered

    page.reload()
    tells(page, "you guessed")
    tells(page, "Keep:")
    press(page, "Next step")
    tells(page, "Which one is faster?")


def test_cards_fill_the_width_and_open_their_lesson_by_mouse_and_keys(page, address):
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"{address}/lessons")
    cards = page.locator(".cards > a")
    expect(cards.first).to_be_visible()
    assert len({round(card.bounding_box()["x"]) for card in cards.all()}) == 3
    cards.nth(1).get_by_role("img").click()
    page.wait_for_url("**/lessons?lesson=how-long")
    tells(page, "A guess in seconds")

    page.go_back()
    page.set_viewport_size({"width": 390, "height": 844})
    expect(cards.first).to_be_visible()
    assert len({round(card.bounding_box()["x"]) for card in cards.all()}) == 1
    page.get_by_role("link", name=re.compile("By a notebook")).press("Enter")
    expect(page.get_by_role("heading", level=1, name="Fact check")).to_be_visible()


def test_a_training_is_cancelled_and_keeps_its_losses(page, address):
    page.goto(f"{address}/training?model=784-784-10&steps=2000")
    press(page, re.compile("^.*Train"))
    expect(page.locator("[data-testid=stVegaLiteChart]").first).to_be_visible()
    press(page, "Cancel")
    tells(page, re.compile("[Cc]ancelled"))


def _is_undisturbed(run):
    return not [flag for result in run.results for flag in result.flags if flag.name in ("noisy", "contended")]
