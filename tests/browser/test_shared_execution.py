"""One server for everybody: who waits reads how long, and what breaks is told in a sentence and mends itself."""

import re
import signal
from contextlib import contextmanager

import pytest
from playwright.sync_api import expect

from gpuexplore.jobs.locks import supervisor_lock
from gpuexplore.store import open_store
from scripts.app_server import database_of, served
from tests.browser.conftest import looks_right, start_run, tells, title

pytestmark = pytest.mark.browser

# One point in many processes, which has no first pass: nobody else has a turn before it is over.
LONG = "?size=4000&dtype=fp32&impl=numpy&budget=5&repeat=20"
STEADY = "?size=800:1160:%2B40&dtype=fp32&impl=numpy&budget=1"  # some seconds on a fast machine as well
STEADY_POINTS = 10
QUICK = "?size=32&dtype=fp32&impl=numpy&budget=0.02"
DATABASE_FILES = ("-wal", "-shm", "")  # the file itself last: without the others it would be opened as it once was
AWAY = "The database cannot be used now"
# Beside other work a page may see the first of them and then all.
BEGUN = re.compile(rf"[1-9]\d? of {STEADY_POINTS} measured")
FROZEN = re.compile("does not respond")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("shared")


@pytest.fixture(scope="module")
def address(home):
    """Serve the app for this file alone: its supervisor is frozen and its database moved."""
    with served(home, warm=False) as found:
        yield found


def test_the_first_visit_after_a_start_may_be_a_deep_link(visitor, address):
    page = visitor()
    page.goto(f"{address}/devices?q=H100")
    expect(title(page, "Devices")).to_be_visible()
    expect(page.get_by_label("Search", exact=True)).to_have_value("H100")
    expect(page.get_by_role("link", name="Benchmark")).to_be_visible()


def cancel_button(page):
    return page.get_by_role("button", name="Cancel")


def test_visitors_wait_in_turn_read_how_long_and_cancel_only_their_own(visitor, address):
    first, second, third = visitor(), visitor(), visitor()
    link = start_run(first, f"{address}/{LONG}")
    tells(first, "0 of 1 measured")
    start_run(second, f"{address}/{QUICK}")
    tells(second, re.compile(r"Next in the queue, expected to start in about \d+"))
    own_link = start_run(third, f"{address}/{QUICK.replace('32', '48')}")
    tells(third, re.compile(r"Waiting for 1 run before it, expected to start in about \d+"))
    looks_right(third)

    third.goto(link)
    tells(third, "0 of 1 measured")
    expect(cancel_button(third)).to_have_count(0)

    third.goto(f"{address}/queue")
    tells(third, "Running: 1")
    tells(third, "Waiting: 2")
    tells(third, re.compile("Your run is number 2"))
    expect(third.locator("[data-testid=stDataFrame]").first.locator("tbody tr")).to_have_count(2)
    looks_right(third)
    cancel_button(third).click()  # the only one: neither of the others' can be cancelled
    tells(third, "Waiting: 1")

    third.goto(own_link)
    tells(third, "Cancelled before anything was measured")
    cancel_button(second).click()
    tells(second, "Cancelled before anything was measured")
    cancel_button(first).click()
    tells(first, "Cancelled before anything was measured")


def test_a_frozen_supervisor_is_told_and_replaced_and_its_run_ends_well_with_no_click(visitor, address, home):
    page = visitor()
    queue = page.context.new_page()
    queue.goto(f"{address}/queue")
    tells(queue, "Queue empty")
    run_id = start_run(page, f"{address}/{STEADY}").rpartition("=")[2]
    tells(page, BEGUN)
    tells(queue, "Running: 1")

    supervisor_lock(database_of(home)).holder().process().send_signal(signal.SIGSTOP)

    for watching in (queue, page):  # for ten seconds: looks take longer
        tells(watching, FROZEN)
    for watching in (queue, page):
        looks_right(watching)
    expect(page.get_by_text(FROZEN)).to_have_count(0)
    expect(page.get_by_text("Export", exact=True)).to_be_visible()
    expect(queue.get_by_text(FROZEN)).to_have_count(0)
    with open_store(database_of(home)) as store:
        statuses = [result.status.value for result in store.load(run_id).results]
    assert statuses == ["ok"] * STEADY_POINTS


@contextmanager
def moved_away(home):
    """Rename the files of the database, and put them back."""
    files = [home / f"gpuexplore.sqlite3{suffix}" for suffix in DATABASE_FILES]
    moved = [(file, file.with_suffix(f"{file.suffix}.away")) for file in files if file.exists()]
    for file, away in reversed(moved):
        file.rename(away)
    yield
    for file, away in moved:
        away.rename(file)


def test_a_database_that_is_away_is_told_and_the_pages_recover_with_every_result(visitor, address, home):
    page, queue, newcomer = visitor(), visitor(), visitor()
    queue.goto(f"{address}/queue")
    tells(queue, "Nothing is running")
    run_id = start_run(page, f"{address}/{STEADY}").rpartition("=")[2]
    tells(queue, "Running: 1")
    tells(page, BEGUN)

    with moved_away(home):
        for watching in (page, queue):
            tells(watching, AWAY)
            looks_right(watching)
        newcomer.goto(f"{address}/benchmark")
        tells(newcomer, AWAY)
        looks_right(newcomer)

    expect(page.get_by_text("Export", exact=True)).to_be_visible()
    expect(queue.get_by_text("Nothing is running")).to_be_visible()
    for watching in (page, queue, newcomer):
        expect(watching.get_by_text(AWAY)).to_have_count(0)
    tells(newcomer, "Nothing is measured yet")
    with open_store(database_of(home)) as store:
        statuses = [result.status.value for result in store.load(run_id).results]
    assert statuses == ["ok"] * STEADY_POINTS
