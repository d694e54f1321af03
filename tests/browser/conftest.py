"""A real server and a real Chromium, once for all journeys."""

import pytest
from playwright.sync_api import expect, sync_playwright

from scripts.app_server import CHROMIUM_ARGUMENTS, served

expect.set_options(timeout=60_000)  # a busy machine is slow, not wrong


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="session")
def address(home):
    with served(home) as found:
        yield found


@pytest.fixture(scope="session")
def browser(chromium):
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=list(CHROMIUM_ARGUMENTS))
        yield started
        started.close()


@pytest.fixture
def page(browser):
    """Return a tab of a new browser profile; whatever its scripts throw fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    thrown = []

    def note(error):  # Playwright takes no built-in method
        thrown.append(error)

    opened.on("pageerror", note)
    yield opened
    context.close()
    assert not thrown
