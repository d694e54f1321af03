"""A run is found, named, compared, presented and sent."""

import json
import re
from dataclasses import replace

import pytest
from playwright.sync_api import expect

from gpuexplore.core.model import Accuracy, Experiment, Shape
from tests.analysis.made import ok
from tests.browser.conftest import settle, title, until_seen

pytestmark = pytest.mark.browser

ROW, TICK_X, RENAME_X = 35, 18, 270  # pixels of a row of the table, which is drawn on a canvas, and places in it
MOST_CLICKS = 10
LABELS = "all => all.map(it => it.getAttribute('aria-label'))"
SIZES = (64, 128)


class Hand:
    """Clicks, and counts its clicks."""

    def __init__(self, page):
        self.page, self.clicks = page, 0

    def click(self, locator):
        expect(locator).to_be_enabled()
        locator.click()
        self.clicks += 1

    def button(self, name):
        self.click(self.page.get_by_role("button", name=name, exact=False).first)

    def cell(self, row, x, count=1):
        """Click a cell once the table stands: one that is drawn anew meanwhile would not take it."""
        settle(self.page)
        canvas = self.page.locator("[data-testid=stDataFrame] canvas").first
        canvas.scroll_into_view_if_needed()
        box = canvas.bounding_box()
        self.page.mouse.click(box["x"] + x, box["y"] + ROW * (row + 1) + ROW // 2, click_count=count)
        self.clicks += 1


def results(factor=1.0):
    found = [
        ok(factor * seconds * size, size=size, implementation=name)
        for size in SIZES
        for name, seconds in (("numpy", 2e-5), ("torch", 1e-5))
    ]
    return [
        replace(
            result,
            accuracy=Accuracy(1e-8, 1e-7),
            measurement=replace(result.measurement, between_processes=0.004),
        )
        for result in found
    ]


ASKED = Experiment("matmul", tuple(Shape.of(m=n, k=n, n=n) for n in SIZES), ("fp32",), ("numpy", "torch"))


def test_last_weeks_run_is_found_named_compared_presented_and_sent(page, address, mine, tmp_path):
    old = mine("the fan before", ASKED, results(), days=7)
    for number in range(200):
        mine(f"other {number}", ASKED, results(), days=3)
    today = mine("after the fan", ASKED, results(factor=1.25))
    hand = Hand(page)

    page.goto(address)
    hand.click(page.get_by_role("link", name="Runs", exact=True))
    page.get_by_label("Search", exact=True).press_sequentially("fan bef")
    expect(page.get_by_text("Table of 1 runs", exact=False).or_(page.locator("canvas")).first).to_be_attached()
    expect(page.locator("[data-testid=stDataFrame] tbody tr")).to_have_count(1)
    hand.cell(0, RENAME_X, count=2)
    page.locator("#portal textarea").fill("Before the fan")
    page.keyboard.press("Enter")
    expect(page.locator("[data-testid=stDataFrame] tbody tr", has_text="Before the fan")).to_be_attached()
    hand.cell(0, TICK_X)
    expect(page.get_by_text("1 run selected.")).to_be_visible()
    page.get_by_label("Search", exact=True).fill("after the fan")
    expect(page.locator("[data-testid=stDataFrame] tbody tr", has_text="after the fan")).to_be_attached()
    hand.cell(0, TICK_X)
    expect(page.get_by_text("2 runs selected.")).to_be_visible()
    hand.button("Compare")
    page.wait_for_url(f"**/compare?a={old}&b={today}")
    expect(page.get_by_text("Of 4 cases: 4 slower")).to_be_visible()
    hand.button("Open before")
    expect(title(page, "Before the fan")).to_be_visible()
    hand.button("Present")
    expect(page.get_by_text("1 of 5")).to_be_visible()
    expect(page.get_by_role("link", name="Queue")).to_have_count(0)
    page.keyboard.press("ArrowRight")
    expect(title(page, "Time per call")).to_be_visible()
    page.keyboard.press("Escape")
    settle(page)  # what is redrawn closes what is open
    hand.button("Export")
    settle(page)
    with page.expect_download() as downloading:
        hand.button("Report")
    downloading.value.save_as(tmp_path / "run.html")

    assert hand.clicks <= MOST_CLICKS
    report = page.context.new_page()
    report.goto((tmp_path / "run.html").as_uri())
    expect(title(report, "Before the fan")).to_be_visible()
    expect(report.locator("svg")).to_have_count(4)


def test_a_file_of_another_machine_is_dropped_and_a_bad_one_is_told(page, address, mine, tmp_path):
    run_id = mine("to be sent", ASKED, results())
    page.goto(f"{address}/benchmark?run={run_id}")
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as downloading:
        page.get_by_role("button", name="JSON", exact=True).click()
    downloading.value.save_as(tmp_path / "lab.json")
    content = json.loads((tmp_path / "lab.json").read_text())
    (tmp_path / "bad.json").write_text(json.dumps(content | {"schema_version": 9}))

    page.goto(f"{address}/runs")
    page.get_by_text("Import runs of other machines").click()
    files = page.locator("input[type=file]")
    files.set_input_files([tmp_path / "bad.json"])
    expect(page.get_by_text("schema_version of bad.json '9': expected 1")).to_be_visible()
    files.set_input_files([tmp_path / "lab.json"])
    expect(page.get_by_text("Imported: to be sent")).to_be_visible()
    expect(page.get_by_text("schema_version of bad.json")).to_have_count(0)


@pytest.mark.parametrize(
    ("chart", "hidden"), [("Time", ""), ("Speedup", "numpy"), ("Share of the limit", "torch"), ("Rate", "numpy")]
)
def test_links_restore_what_is_shown(page, visitor, address, mine, chart, hidden):
    run_id = mine(f"run of {chart}", ASKED, results())
    page.goto(f"{address}/benchmark?run={run_id}&hide={hidden}".removesuffix("&hide="))
    page.get_by_test_id("stButtonGroup").get_by_text(chart, exact=True).click()
    settle(page)  # the link to copy is that of what is drawn when it is asked for
    page.get_by_role("button", name="Copy link").click()
    copied = page.get_by_test_id("stCode").filter(has_text=f"run={run_id}")
    expect(copied).to_have_text(page.url)

    other = visitor()
    other.goto(copied.text_content())
    expect(title(other, f"run of {chart}")).to_be_visible()
    marks = "[data-testid=stVegaLiteChart] svg [aria-label]"
    drawn = page.locator(marks).evaluate_all(LABELS)
    assert drawn
    expect(other.locator(marks)).to_have_count(len(drawn))
    assert other.locator(marks).evaluate_all(LABELS) == drawn
    expect(other.locator("h4").first).to_have_text(page.locator("h4").first.inner_text())


def test_what_mfu_is_relative_to_and_a_recording_beside_the_run_are_chosen_and_stay_in_the_link(page, address, mine):
    page.goto(f"{address}/benchmark?run={mine('mine', ASKED, results())}")
    page.get_by_role("button", name="Baseline, lines").click()
    pick(page, "Compare with", re.compile("recorded: "))
    page.wait_for_url("**with=**")
    expect(page.get_by_text("Hollow points and thin lines are")).to_be_visible()
    pick(page, "MFU relative to", "Best published result: —")
    page.wait_for_url("**peak=published**")

    page.reload()
    expect(page.get_by_text("Hollow points and thin lines are")).to_be_visible()
    expect(page.get_by_text("There is no MFU relative to the best published result")).to_be_visible()
    page.get_by_text("MFU against every known peak").click()
    expect(page.get_by_text("Source, or why it is unknown").first).to_be_visible()


def pick(page, label, option):
    """Choose an option; a page that is redrawn meanwhile closes the menu."""
    option = page.get_by_role("option", name=option)
    until_seen(page.get_by_label(label).click, option)
    option.first.click()
