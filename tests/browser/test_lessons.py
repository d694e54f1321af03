"""Lessons as learners do them: the tour, answers that stay, one measurement for several, a mistake, a training."""

import re

import pytest
from playwright.sync_api import expect

from gpuexplore.store import open_store
from scripts.app_server import database_of

pytestmark = pytest.mark.browser

TOUR_STEPS = 10


def tells(page, text):
    expect(page.get_by_text(text).first).to_be_visible()


def press(page, name):
    page.get_by_role("button", name=name).first.click()


def test_the_tour_is_offered_begun_and_kept_over_a_reload(page, address):
    page.goto(address)
    press(page, "Take the tour")
    tells(page, "A guess in seconds")
    page.get_by_role("textbox", name=re.compile("^Time of one 1024")).fill("20")
    page.keyboard.press("Enter")  # the keyboard alone suffices
    tells(page, "you guessed")
    tells(page, "Keep:")
    tells(page, f"1 of {TOUR_STEPS} steps")

    page.reload()
    tells(page, "you guessed")
    tells(page, "Keep:")
    press(page, "Next step")
    expect(page.get_by_text("Which one is faster?").first).to_be_visible()


def test_the_last_step_of_the_tour_is_computed_at_once(page, address):
    page.goto(f"{address}/lessons?lesson=tour&step=j")
    page.get_by_role("textbox").first.fill("8")
    press(page, "Check")
    expect(page.get_by_text("A prediction is a time with an interval").first).to_be_visible()


def test_a_second_browser_uses_the_measurement_of_the_first(visitor, address, home):
    first, second = visitor(), visitor()
    link = f"{address}/lessons?lesson=how-fast-should-it-be&step=b"
    first.goto(link)
    press(first, re.compile("Run, about"))
    tells(first, "Keep:")
    runs = _runs(home)

    second.goto(link)
    reuse = second.get_by_role("button", name=re.compile("Use the measurement of"))
    if _is_undisturbed(home):
        reuse.click()
        tells(second, "Keep:")
        assert _runs(home) == runs
    else:
        press(second, re.compile("Run, about"))
        tells(second, "Keep:")
        assert _runs(home) > runs


def test_a_mistake_is_made_beside_the_right_way(page, address):
    page.goto(f"{address}/timing-mistakes?mistake=no-synchronise")
    press(page, re.compile("Reproduce this mistake on"))
    expect(page.get_by_text("detected", exact=True).first).to_be_visible()
    expect(page.locator("[data-testid=stVegaLiteChart]")).to_be_visible()


def test_a_training_is_cancelled_and_keeps_its_losses(page, address):
    page.goto(f"{address}/training?model=784-784-10&steps=2000")
    press(page, re.compile("^.*Train"))
    expect(page.locator("[data-testid=stVegaLiteChart]").first).to_be_visible()
    press(page, "Cancel")
    tells(page, re.compile("[Cc]ancelled"))


def _runs(home):
    with open_store(database_of(home)) as store:
        return len(store.history(limit=1000))


def _is_undisturbed(home):
    with open_store(database_of(home)) as store:
        newest = store.load(store.history(limit=1)[0].id)
    return not [flag for result in newest.results for flag in result.flags if flag.name in ("noisy", "contended")]
