"""Explore: controls that move the chart in the browser, without the server, and what is measured from it."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import settle, tells

pytestmark = pytest.mark.browser
RINGS = "path[aria-roledescription=point]"


def headline(page):
    return page.get_by_role("heading", level=2).first


def charts(page):
    return page.locator("[data-testid=stVegaLiteChart] svg, [data-testid=stVegaLiteChart] canvas")


@pytest.fixture
def explored(page, address):
    """Return a page on Explore, and the messages that its browser has sent to the server since it was drawn."""
    sent = []

    def note(frame):  # Playwright takes no built-in method
        sent.append(frame)

    page.on("websocket", lambda socket: socket.on("framesent", note))
    page.goto(address)
    expect(headline(page)).to_contain_text("predicted to take")
    expect(charts(page).first).to_be_visible()
    settle(page)
    sent.clear()
    return page, sent


def test_slider_and_chips_move_the_sentence_and_the_link_and_ask_nothing_of_the_server(explored, visitor):
    page, sent = explored
    expect(headline(page)).to_contain_text("4,096 × 4,096 × 4,096 in bf16")

    page.get_by_role("slider", name="Size").press("ArrowLeft")
    expect(headline(page)).to_contain_text("2,048 × 2,048 × 2,048 in bf16")
    page.get_by_text("fp32", exact=True).click()
    expect(headline(page)).to_contain_text("in fp32")
    page.get_by_text("RTX 4090", exact=True).click()
    page.get_by_text("T4", exact=True).click()
    page.get_by_text("Softmax", exact=True).click()
    expect(headline(page)).to_contain_text("1,024 × 1,024 in fp32")
    page.get_by_text("Rate", exact=True).click()
    expect(page).to_have_url(re.compile(r"op=softmax.*dtype=fp32.*rtx-4090.*n=1024.*view=rate"))
    assert sent == []

    other = visitor()
    other.goto(page.url)
    expect(headline(other)).to_have_text(headline(page).text_content())
    expect(other.get_by_text("Memory rate, higher is better")).to_be_attached()


def test_run_this_here_adds_points_of_this_machine(explored):
    page, sent = explored

    page.get_by_role("button", name="Run this here").click()
    page.wait_for_url("**measuring=**")
    tells(page, re.compile("Measured here"))

    assert sent


def test_embedded_it_is_alone(page, address):
    page.goto(f"{address}/?embed=true&op=softmax&n=2048")

    expect(headline(page)).to_contain_text("2,048 × 2,048")
    expect(charts(page).first).to_be_visible()
    expect(page.get_by_role("button", name="Run this here")).to_have_count(0)
    expect(page.get_by_role("link", name="Benchmark")).to_have_count(0)
    expect(page.get_by_role("heading", level=1)).to_have_count(0)
