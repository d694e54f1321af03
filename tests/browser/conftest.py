"""A real server and a real Chromium, once for all journeys."""

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Locator, TimeoutError, expect, sync_playwright

from gpuexplore.store import Description, open_store
from gpuexplore.ui.server import OWNER_COOKIE
from scripts.app_server import CHROMIUM_ARGUMENTS, database_of
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
FITS = "(it => it.scrollWidth <= it.clientWidth)(document.querySelector('[data-testid=stMain]'))"
DESK, HAND = {"width": 1280, "height": 900}, {"width": 390, "height": 900}
expect.set_options(timeout=DEADLINE_MS)


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


@pytest.fixture(scope="session")
def profiles():
    """Give the list of profiles, which tests leave empty but for the files of the app: a new one would load them."""
    return []


@pytest.fixture
def visitor(browser, profiles):
    """Return how one more visitor opens a tab, with cookies of its own; what its scripts throw fails the test."""
    visitors, thrown = [], []

    def note(error):  # Playwright takes no built-in method
        thrown.append(error)

    def opened():
        if len(visitors) == len(profiles):
            profiles.append(browser.new_context(viewport=DESK))
            profiles[-1].set_default_timeout(DEADLINE_MS)
        profile = profiles[len(visitors)]
        visitors.append(profile)
        profile.on("weberror", note)
        return profile.new_page()

    yield opened
    for profile in visitors:
        for page in profile.pages:
            page.close()
        profile.remove_listener("weberror", note)
        profile.clear_cookies()
    assert not [error.error for error in thrown]


@pytest.fixture
def page(visitor):
    return visitor()


@pytest.fixture
def store(address, server_home):
    with open_store(database_of(server_home)) as store:
        yield store


@pytest.fixture
def mine(page, address, store):
    """Return a function that stores a run of this page's browser, some days old, and returns its id."""
    page.request.get(address)  # the cookie without the page
    (owner,) = [cookie["value"] for cookie in page.context.cookies() if cookie["name"] == OWNER_COOKIE]

    def record(title, experiment, results, *, days=0):
        then = datetime.now(UTC) - timedelta(days=days)
        run_id = type(store)(store.engine, lambda: then).record(experiment, owner, results=results)
        store.describe(run_id, owner, Description(title=title))
        return run_id

    return record


def title(page, name):
    return page.get_by_role("heading", level=1, name=name)


def tells(page, text):
    expect(page.get_by_text(text).first).to_be_visible()


def start_run(page, address):
    """Press Run on a page of Benchmark, and return the link of what it measures."""
    page.goto(address)
    page.get_by_role("button", name=re.compile(r"^.*Run \d+ points?")).click()
    page.wait_for_url("**run=**")
    return page.url


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


def screens(page):
    """Yield each screen, light and dark, on a desk and in a hand, once the page fits it and shows no exception."""
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        expect(page.locator(".stApp")).to_have_css("color-scheme", scheme)
        for screen in (DESK, HAND):
            page.set_viewport_size(screen)
            expect(page.locator("h1")).to_be_visible()
            expect(page.get_by_test_id("stException")).to_have_count(0)
            page.wait_for_function(FITS)  # charts are drawn anew first
            yield screen


def looks_right(page):
    """Assert that the page fits every screen and shows no exception."""
    for _ in screens(page):
        pass
