"""A room with three browsers: opened, joined by its code, asked, shown on the wall, told something, closed, deleted."""

import re
from contextlib import suppress

import pytest
from playwright.sync_api import TimeoutError, expect

from tests.browser.conftest import AGAIN_MS

pytestmark = pytest.mark.browser


@pytest.fixture
def leader(visitor, address):
    """Open a room, and return the page of who leads it."""
    page = visitor()
    page.goto(f"{address}/rooms")
    page.get_by_role("textbox", name="Title").fill("GPU course")
    page.get_by_role("button", name="Open a room").click()
    expect(page.get_by_text("Anyone with the code can join")).to_be_visible()
    expect(page.get_by_role("img").first).to_be_visible()
    return page


@pytest.fixture
def code(leader):
    return re.search(r"room=([A-Z]{6})", leader.url).group(1)


@pytest.fixture
def learner(visitor, address, leader, code):
    """Join the room by its code, typed as people do, and return the page of who joined."""
    page = visitor()
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{address}/rooms")
    page.get_by_role("textbox", name="Code").fill(f"{code[:3].lower()} {code[3:]}")
    page.get_by_role("button", name="Join").click()
    page.get_by_role("textbox", name="Your name").fill("Ada <b>")
    page.get_by_role("button", name="Join").click()
    expect(page.get_by_text("You are Ada <b>. 1 person is in this room.")).to_be_visible()
    expect(leader.get_by_text("1 joined, 1 here")).to_be_visible()
    return page


def test_a_class_guesses_measures_sees_it_on_the_wall_and_is_told_what_comes_next(
    visitor, address, leader, learner, code, tmp_path
):
    wall = leader.context.new_page()
    wall.set_viewport_size({"width": 1920, "height": 1080})
    wall.goto(f"{address}/rooms?room={code}&view=wall")
    asked_and_revealed(leader, learner, wall)
    leader.locator("summary", has_text="Results as a file").press("Enter")
    with leader.expect_download() as download:
        leader.get_by_role("button", name="CSV", exact=True).press("Enter")
    download.value.save_as(tmp_path / "room.csv")
    assert "Ada <b>,done,2.00 ms," in (tmp_path / "room.csv").read_text()

    leader.locator("summary", has_text="Send a message").press("Enter")
    leader.get_by_role("textbox", name="Message on all pages").fill("Guess first")
    leader.get_by_role("textbox", name="Link to a page (optional)").fill(f"{address}/lessons?lesson=how-long")
    leader.get_by_role("button", name="Show to all").click()
    expect(learner.get_by_role("heading", name="Guess first")).to_be_visible()
    with learner.context.expect_page() as opened:
        learner.get_by_role("link", name="Open").click()
    expect(opened.value.get_by_role("heading", name="How long does it take?")).to_be_visible()
    assert opened.value.url == f"{address}/lessons?lesson=how-long"

    closed_and_deleted(leader, learner, visitor(), f"{address}/rooms?room={code}", f"{code[:3]} {code[3:]}")


def test_the_steps_of_a_lesson_replace_each_other_in_one_tab_which_leads_on(address, leader, learner):
    leader.get_by_role("button", name="Open its first step").press("Enter")
    with learner.context.expect_page() as opened:
        learner.get_by_role("link", name="Open this step").click()
    lesson = opened.value
    expect(lesson.get_by_text("the leader opens the steps one by one")).to_be_visible()
    tabs = len(learner.context.pages)

    leader.get_by_role("button", name=re.compile("Open step b")).press("Enter")
    expect(lesson.get_by_role("link", name="The leader went on to step b")).to_be_visible()
    link = learner.get_by_role("link", name="Open this step")
    expect(link).to_have_attribute("href", re.compile("step=b"))
    link.click()
    lesson.wait_for_url("**step=b")
    expect(lesson.get_by_role("heading", name=re.compile("^b[.]"))).to_be_visible()

    leader.get_by_role("button", name=re.compile("Open step c")).press("Enter")
    lesson.get_by_role("link", name="The leader went on to step c").click()
    expect(lesson.get_by_role("heading", name=re.compile("^c[.]"))).to_be_visible()
    assert len(learner.context.pages) == tabs


def asked_and_revealed(leader, learner, wall):
    what, size = leader.get_by_role("combobox", name="What"), leader.get_by_role("textbox", name="Size")
    for _ in range(9):  # the list may be drawn again while a key goes to it, which loses the choice
        what.fill("Guess, then")
        what.press("Enter")
        with suppress(TimeoutError):
            size.wait_for(timeout=AGAIN_MS)
            break
    size.fill("256")
    leader.get_by_role("button", name="Set this task").press("Enter")
    expect(wall.get_by_role("heading", name="How long does torch take for matmul of size 256 in fp32?")).to_be_visible()
    learner.get_by_role("textbox", name="Your guess").fill("2 ms")
    learner.get_by_role("button", name="Guess", exact=True).press("Enter")
    expect(learner.get_by_text("You guessed 2.00 ms")).to_be_visible()
    expect(wall.get_by_text("0 of 1 done, 1 begun")).to_be_visible()

    with learner.context.expect_page() as opened:
        learner.get_by_role("link", name="Measure").click()
    opened.value.get_by_role("button", name="Run 1 point").press("Enter")
    expect(wall.get_by_text("1 of 1 done, 0 begun")).to_be_visible()
    expect(wall.locator("canvas, svg.marks")).to_have_count(1)  # what was measured is kept back
    leader.get_by_role("button", name="Reveal").press("Enter")
    expect(wall.get_by_text("answers are closed")).to_be_visible()
    expect(wall.locator("canvas, svg.marks")).to_have_count(2)
    assert wall.evaluate("document.scrollingElement.scrollHeight") <= 1080
    expect(learner.get_by_text("The room measured")).to_be_visible()


def closed_and_deleted(leader, learner, late, link, name):
    leader.locator("summary", has_text="This room").press("Enter")  # by keys: what is unfolded moves below a pointer
    leader.get_by_role("button", name="Close", exact=True).press("Enter")
    expect(learner.get_by_text("The leader has closed this room")).to_be_visible()
    late.goto(link)
    expect(late.get_by_text("it can no longer be joined")).to_be_visible()
    learner.reload()
    expect(learner.get_by_text("You are Ada <b>")).to_be_visible()

    leader.locator("summary", has_text="This room").press("Enter")
    leader.get_by_role("checkbox", name="Delete all data of this room").press("Space")
    expect(leader.get_by_role("button", name="Delete", exact=True)).to_be_enabled()
    leader.get_by_role("button", name="Delete", exact=True).press("Enter")
    for page in (leader, learner):
        expect(page.get_by_text(f"Room {name} was deleted")).to_be_visible()
