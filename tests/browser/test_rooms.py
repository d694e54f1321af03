"""A room with two browsers: opened, joined by its code, told something, closed."""

import re

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


def test_a_class_joins_by_a_code_and_is_told_what_comes_next(visitor, address):
    leader, learner, late = visitor(), visitor(), visitor()
    leader.goto(f"{address}/rooms")
    leader.get_by_role("textbox", name="Title").fill("GPU course")
    leader.get_by_role("button", name="Open a room").click()
    expect(leader.get_by_text("Anyone with the code can join")).to_be_visible()
    expect(leader.get_by_role("img").first).to_be_visible()
    code = re.search(r"room=([A-Z]{6})", leader.url).group(1)

    learner.set_viewport_size({"width": 390, "height": 844})
    learner.goto(f"{address}/rooms")
    learner.get_by_role("textbox", name="Code").fill(f"{code[:3].lower()} {code[3:]}")
    learner.get_by_role("button", name="Join").click()
    learner.get_by_role("textbox", name="Your name").fill("Ada <b>")
    learner.get_by_role("button", name="Join").click()
    expect(learner.get_by_text("You are Ada <b>. 1 person is in this room.")).to_be_visible()
    expect(leader.get_by_text("1 joined, 1 here")).to_be_visible()

    leader.locator("summary", has_text="Send a message").press("Enter")
    leader.get_by_role("textbox", name="Message on all pages").fill("Guess first")
    leader.get_by_role("textbox", name="Link to a page (optional)").fill(f"{address}/lessons?lesson=how-long")
    leader.get_by_role("button", name="Show to all").click()
    expect(learner.get_by_role("heading", name="Guess first")).to_be_visible()
    with learner.context.expect_page() as opened:
        learner.get_by_role("link", name="Open").click()
    expect(opened.value.get_by_role("heading", name="Lessons")).to_be_visible()
    assert opened.value.url == f"{address}/lessons?lesson=how-long"

    leader.locator("summary", has_text="This room").press("Enter")  # by keys: what is unfolded moves below a pointer
    leader.get_by_role("button", name="Close", exact=True).press("Enter")
    expect(learner.get_by_text("The leader has closed this room")).to_be_visible()
    late.goto(f"{address}/rooms?room={code}")
    expect(late.get_by_text("it can no longer be joined")).to_be_visible()
    learner.reload()
    expect(learner.get_by_text("You are Ada <b>")).to_be_visible()

    leader.locator("summary", has_text="This room").press("Enter")
    leader.get_by_role("checkbox", name="Delete all data of this room").press("Space")
    expect(leader.get_by_role("button", name="Delete", exact=True)).to_be_enabled()
    leader.get_by_role("button", name="Delete", exact=True).press("Enter")
    expect(leader.get_by_text(f"Room {code[:3]} {code[3:]} was deleted")).to_be_visible()
    expect(learner.get_by_text(f"Room {code[:3]} {code[3:]} was deleted")).to_be_visible()


def test_a_class_guesses_measures_and_sees_it_on_the_wall(visitor, address, tmp_path):
    leader, learner = visitor(), visitor()
    leader.goto(f"{address}/rooms")
    leader.get_by_role("button", name="Open a room").click()
    expect(leader.get_by_text("Anyone with the code can join")).to_be_visible()
    code = re.search(r"room=([A-Z]{6})", leader.url).group(1)
    wall = leader.context.new_page()
    wall.set_viewport_size({"width": 1920, "height": 1080})
    wall.goto(f"{address}/rooms?room={code}&view=wall")
    learner.goto(f"{address}/rooms?room={code}")
    learner.get_by_role("textbox", name="Your name").fill("Ada <b>")
    learner.get_by_role("button", name="Join").press("Enter")

    expect(leader.get_by_text("1 joined, 1 here")).to_be_visible()
    what = leader.get_by_role("combobox", name="What")  # by keys, as the list that opens may be drawn again
    what.fill("Guess, then")
    what.press("Enter")
    leader.get_by_role("textbox", name="Size").fill("256")
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

    leader.locator("summary", has_text="Results as a file").press("Enter")
    with leader.expect_download() as download:
        leader.get_by_role("button", name="CSV", exact=True).press("Enter")
    download.value.save_as(tmp_path / "room.csv")
    assert "Ada <b>,done,2.00 ms," in (tmp_path / "room.csv").read_text()
