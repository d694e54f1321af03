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
def visitor(browser):
    """Return how one more visitor opens a tab, with cookies of its own; what its scripts throw fails the test."""
    contexts, thrown = [], []

    def note(error):  # Playwright takes no built-in method
        thrown.append(error)

    def opened():
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        contexts.append(context)
        context.on("weberror", note)
        return context.new_page()

    yield opened
    for context in contexts:
        context.close()
    assert not [error.error for error in thrown]


@pytest.fixture
def page(visitor):
    return visitor()
