"""The roofline in a real browser: hovering and clicking a point, Back, runs for roofs, small and dark screens."""

import re
from dataclasses import replace

import pytest
from playwright.sync_api import expect

from gpuexplore.core.model import Experiment
from tests.analysis.made import ok
from tests.browser.conftest import DESK, screens, title, until_seen

pytestmark = pytest.mark.browser
WITHIN = """() => {
    const drawn = [...document.querySelectorAll("[data-testid=stVegaLiteChart] svg")]
    return drawn.length && drawn.every(it => it.getBoundingClientRect().right <= window.innerWidth)
}"""


def chart(page):
    return page.locator("[data-testid=stVegaLiteChart] svg")


def points(page):
    """Return the marks of results; those of ridge points have no dtype."""
    return chart(page).locator("path[aria-label*='Median time']")


@pytest.fixture
def run_id(mine, store):
    """Return the id of a run of one point on this machine."""
    (processor, *_) = store.supervisor().devices
    result = ok(1e-5, size=64, implementation="numpy", on=processor.id)
    result = replace(result, environment=replace(result.environment, device=processor))
    return mine("matmul 64", Experiment("matmul", (result.case.shape,), ("fp32",), ("numpy",)), [result])


def test_hovering_a_point_tells_its_case_and_a_click_opens_its_run_and_back_returns(page, address, run_id):
    page.goto(f"{address}/roofline?op=matmul&recorded=off")  # recordings of such a CPU may ship
    expect(points(page)).to_have_count(1)
    points(page).hover()
    tooltip = page.locator("#vg-tooltip-element")
    expect(tooltip).to_contain_text("numpy in fp32")
    expect(tooltip).to_contain_text("64 × 64 × 64")
    expect(tooltip).to_contain_text(run_id)

    until_seen(points(page).click, title(page, "matmul 64"))
    page.wait_for_url(re.compile(rf"/benchmark\?run={run_id}$"))
    expect(page.get_by_text("Export", exact=True)).to_be_visible()

    page.go_back()
    expect(title(page, "Roofline")).to_be_visible()
    page.wait_for_url(re.compile(r"/roofline\?op=matmul&recorded=off$"))
    expect(points(page)).to_have_count(1)


def test_without_a_run_a_button_leads_to_one_and_a_click_has_roofs_measured(page, address):
    page.goto(f"{address}/roofline?runs=mine")
    page.get_by_role("button", name="Run a benchmark").click()
    expect(title(page, "Benchmark")).to_be_visible()

    page.go_back()
    page.get_by_role("button", name="Measure this device's roofs").click()
    page.wait_for_url("**measuring=**")
    cancel = page.get_by_role("button", name="Cancel")
    for left in (2, 1, 0):  # of the products and the triad, which take a minute
        expect(cancel).to_have_count(left)
        if left:
            cancel.last.click()


def test_the_roofline_fits_any_screen(page, address):
    page.goto(f"{address}/roofline?device=h100-sxm5-80gb")
    expect(chart(page)).to_be_visible()
    for screen in screens(page):
        page.wait_for_function(WITHIN)  # charts are drawn anew after the page
        said = "bf16, fp16 matrix" if screen == DESK else "bf16, fp16"  # in a hand without units and figures
        label = chart(page).get_by_text(said, exact=screen != DESK)
        expect(label).to_have_count(2)  # with its rim
