"""A real server and a real Chromium, once for all journeys."""

from contextlib import suppress

import pytest
from playwright.sync_api import Locator, TimeoutError, expect, sync_playwright

from scripts.app_server import CHROMIUM_ARGUMENTS, served
from tests.waiting import DEADLINE_S

DEADLINE_MS = 1000 * DEADLINE_S
AGAIN_MS = 10_000  # after which a click is made anew: a chart or a menu that is redrawn under it loses one
AT_REST = "[data-test-script-state=notRunning]"
SETTLED = """() => new Promise(done => {
    const quiet = () => document.querySelector("AT_REST") ? done(true) : wait();
    const wait = () => { clearTimeout(timer); timer = setTimeout(quiet, 500); };
    let timer;
    new MutationObserver(wait).observe(document.body, {subtree: true, childList: true, attributes: true});
    wait();
})""".replace("AT_REST", AT_REST)
RESTS = f"() => !document.querySelector('[data-testid=stApp]') || document.querySelector('{AT_REST}')"
expect.set_options(timeout=DEADLINE_MS)


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="session")
def address(home):
    with served(home) as found:
        yield found


@pytest.fixture(scope="session", autouse=True)
def patient_clicks():
    """Have what a visitor does wait for the page's script: a redraw loses a click, a download's file or a selection."""

    def patient(act):
        def waiting(locator, *arguments, **options):
            with suppress(TimeoutError):  # of a script that goes on, as a visitor would
                locator.first.wait_for(timeout=AGAIN_MS)  # else a page that has not begun to draw is taken to rest
                locator.page.wait_for_function(RESTS, timeout=AGAIN_MS)
            return act(locator, *arguments, **options)

        return waiting

    with pytest.MonkeyPatch.context() as patch:
        for name in ("click", "fill", "press"):
            patch.setattr(Locator, name, patient(getattr(Locator, name)))
        yield


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

    def opened(width=1280, **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        context.set_default_timeout(DEADLINE_MS)
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


def settle(page):
    """Wait until the page's script has ended and nothing has changed in the page for a while."""
    page.wait_for_function(SETTLED)


def until_seen(act, seen):
    """Act until the locator `seen` is there: what is redrawn between press and release loses a click."""
    for _ in range(int(DEADLINE_MS / AGAIN_MS)):
        with suppress(TimeoutError):
            act(timeout=AGAIN_MS)
        with suppress(TimeoutError):
            return seen.first.wait_for(timeout=AGAIN_MS)
    raise AssertionError(f"never seen: {seen}")
