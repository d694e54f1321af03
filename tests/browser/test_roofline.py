"""The roofline in a real browser: links, hovering, clicks, small and dark screens."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import until_seen

pytestmark = pytest.mark.browser

RUN = "?size=64&dtype=fp32&impl=numpy&budget=0.02"


def chart(page):
    return page.locator("[data-testid=stVegaLiteChart] svg")


def points(page):
    """Return the marks of results; those of ridge points have no dtype."""
    return chart(page).locator("path[aria-label*='Median time']")


def measure(page, address):
    """Make a run as this page's browser; return its id."""
    page.goto(f"{address}/{RUN}")
    page.get_by_role("button", name=re.compile(r"^.*Run \d+ points?")).click()
    page.wait_for_url("**run=**")
    expect(page.get_by_text("Export", exact=True)).to_be_visible()
    return re.search(r"run=(\w+)", page.url)[1]


def test_a_link_restores_device_and_dtype(page, address):
    page.goto(f"{address}/roofline?device=a100-sxm4-80gb&dtype=bf16&recorded=off")
    expect(page.get_by_role("heading", level=1, name="Roofline")).to_be_visible()
    expect(chart(page)).to_be_visible()
    expect(chart(page).get_by_text("bf16 matrix 312 TFLOP/s").last).to_be_visible()
    expect(page.get_by_text("No measurements of A100 SXM4 80GB on this server")).to_be_visible()


def test_hovering_a_point_tells_its_case_and_a_click_opens_its_run(page, address):
    run_id = measure(page, address)
    page.goto(f"{address}/roofline?op=matmul&recorded=off")  # recordings of such a CPU may ship
    expect(points(page)).to_have_count(1)

    points(page).hover()
    tooltip = page.locator("#vg-tooltip-element")
    expect(tooltip).to_contain_text("numpy in fp32")
    expect(tooltip).to_contain_text("64 × 64 × 64")
    expect(tooltip).to_contain_text(run_id)

    opened = re.compile(f"run={run_id}")
    until_seen(points(page).click, page.get_by_role("heading", level=1, name="matmul 64"))
    expect(page).to_have_url(opened)
    expect(page.get_by_text("Export", exact=True)).to_be_visible()


def test_without_a_run_a_button_leads_to_one(page, address):
    page.goto(f"{address}/roofline")
    page.get_by_role("button", name="Run a benchmark").click()
    expect(page.get_by_role("heading", level=1, name="Benchmark")).to_be_visible()


def test_the_roofs_of_the_cpu_are_measured_at_a_click(page, address):
    page.goto(f"{address}/roofline")
    page.get_by_role("button", name="Measure this device's roofs").click()
    page.wait_for_url("**measuring=**")
    expect(page.get_by_text("STREAM triad: measured.")).to_be_visible()
    expect(chart(page).get_by_text("best result so far")).to_be_visible()


@pytest.mark.parametrize("width", [420, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_roofline_fits_any_screen(visitor, address, scheme, width):
    page = visitor(width, color_scheme=scheme)
    page.goto(f"{address}/roofline?device=h100-sxm5-80gb")
    expect(chart(page)).to_be_visible()
    main = page.locator("[data-testid=stMain]")
    assert main.evaluate("it => it.scrollWidth <= it.clientWidth")
    assert chart(page).evaluate("it => it.getBoundingClientRect().right <= window.innerWidth")
    expect(chart(page).get_by_text("bf16, fp16 matrix", exact=width < 800)).to_have_count(2)  # with its rim


def test_back_from_an_opened_run_returns_to_the_roofline_with_its_choices_at_one_press(page, address):
    run_id = measure(page, address)
    page.goto(f"{address}/roofline?op=matmul&recorded=off")
    expect(points(page)).to_have_count(1)
    until_seen(points(page).click, page.get_by_role("heading", level=1, name="matmul 64"))
    page.wait_for_url(re.compile(rf"/\?run={run_id}$"))
    expect(page.get_by_text("Export", exact=True)).to_be_visible()

    page.go_back()
    expect(page.get_by_role("heading", level=1, name="Roofline")).to_be_visible()
    page.wait_for_url(re.compile(r"/roofline\?op=matmul&recorded=off$"))
    expect(points(page)).to_have_count(1)
