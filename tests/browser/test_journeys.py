import re
from contextlib import suppress

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import AGAIN_MS, settle, start_run, title

pytestmark = pytest.mark.browser

ENDLESS = "?size=256:1024:%2B32&dtype=fp16&impl=numpy&budget=60"
HEADING_Y, FP64_X = 15, 350  # pixels of the table of devices, which is drawn on a canvas; of the column about


def charts(page):
    return page.locator("[data-testid=stVegaLiteChart]")


def test_one_click_gives_every_point_of_the_default_chart_and_the_link_keeps_the_run(page, address, store, visitor):
    start_run(page, f"{address}/benchmark")
    expect(charts(page).first).to_be_visible()
    expect(page.get_by_text("Export", exact=True)).to_be_visible()
    expect(page.locator("h4").first).not_to_contain_text("So far")
    settle(page)
    headline = page.locator("h4").first.inner_text()
    drawn = charts(page).count()
    run = store.load(re.search(r"run=(\w+)", page.url)[1])
    assert len(run.results) == 36
    assert {result.status.value for result in run.results} == {"ok"}

    page.reload()
    expect(page.locator("h4").first).to_have_text(headline)
    expect(charts(page)).to_have_count(drawn)
    other = visitor()
    other.goto(page.url)
    expect(other.locator("h4").first).to_have_text(headline)


def test_a_run_can_be_cancelled_after_a_reload_and_keeps_what_was_measured(page, address):
    start_run(page, f"{address}/{ENDLESS}")
    expect(page.get_by_role("button", name="Cancel")).to_be_visible()
    page.reload()
    page.get_by_role("button", name="Cancel").click()
    cancelled = re.compile(r"Cancelled (after \d+ of \d+ points|before anything was measured)")
    expect(page.get_by_text(cancelled)).to_be_visible()
    page.get_by_role("button", name="Edit").click()
    expect(page.get_by_label("Sizes", exact=True)).to_have_value("256:1024:+32")


def test_a_chosen_operation_and_its_sizes_survive_a_reload_and_back_restores_those_before(page, address):
    page.goto(f"{address}/benchmark")
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Operation", exact=True).click()
    page.get_by_role("option", name="Softmax").click()
    page.wait_for_url("**op=softmax**")
    settle(page)  # a field redrawn between its selection and the typing keeps what it had
    page.get_by_label("Sizes", exact=True).fill("100,200")
    page.get_by_label("Sizes", exact=True).press("Enter")
    page.wait_for_url("**size=100**")

    page.reload()
    asked = page.get_by_test_id("stMain").get_by_text(re.compile("Softmax of rows 100, 200"))
    expect(asked).to_be_visible()

    page.goto(f"{address}/benchmark?size=32")
    expect(page.get_by_text(re.compile("Matrix multiplication 32"))).to_be_visible()
    page.go_back()
    expect(asked).to_be_visible()


def test_the_sidebar_leads_from_page_to_page_each_with_its_title_and_choices_of_its_own(page, address):
    page.goto(f"{address}/benchmark")
    expect(title(page, "Benchmark")).to_be_visible()
    places = page.get_by_test_id("stSidebar")
    for place, name in (("Kernels",) * 2, ("Predict", "Dtype what-if"), ("Roofline",) * 2, ("Benchmark",) * 2):
        places.get_by_role("link", name=place).click()
        expect(title(page, name)).to_be_visible()
        expect(page).to_have_title(f"{name} · gpuexplore")
        if name == "Dtype what-if":
            expect(page.get_by_text("Matrix multiplication, 4,096")).to_be_visible()
            expect(charts(page)).to_have_count(4)


def test_a_click_on_a_heading_sorts_by_value_not_by_the_text_of_its_units(page, address):
    page.goto(f"{address}/devices?q=Tesla P")
    table = page.locator("[data-testid=stDataFrame]").last  # drawn on a canvas: its copy for screen readers is read
    rates = table.locator("tbody tr td:nth-child(4)")
    expect(rates.first).to_be_attached()
    settle(page)
    by_value = sorted(rates.all_inner_texts(), key=float)
    assert rates.all_inner_texts() != by_value
    assert 10 * float(by_value[0]) < float(by_value[-1])

    canvas = table.locator("canvas").first
    canvas.scroll_into_view_if_needed()
    corner = canvas.bounding_box()

    def sorts_by_value(x):
        page.mouse.click(corner["x"] + x, corner["y"] + HEADING_Y)
        with suppress(AssertionError):
            expect(rates).to_have_text(by_value, timeout=AGAIN_MS / 4)
            return True

    nearest_first = sorted(range(200, 600, 30), key=lambda x: abs(x - FP64_X))
    assert any(map(sorts_by_value, nearest_first))  # one of them hits the heading fp64


def test_the_machine_code_of_a_kernel_is_shown_for_gpus_that_are_not_here_and_the_link_keeps_the_choice(page, address):
    page.goto(f"{address}/kernels?impl=numba-cuda-vector&gpu=h100-sxm5-80gb&tab=code")
    expect(page.get_by_role("heading", name="Machine code")).to_be_visible()
    expect(page.get_by_text("First bottleneck:")).to_be_visible()
    expect(page.get_by_text("sm_90a")).to_be_visible()
    page.get_by_text(re.compile(r"^Show all [\d,]+ instructions$")).click()
    expect(page.get_by_text("The whole kernel for sm_90a", exact=False)).to_be_visible()

    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Target GPU").click()
    page.keyboard.type("A100 SXM4 80")
    page.keyboard.press("Enter")
    page.wait_for_url("**gpu=a100-sxm4-80gb**")
    page.keyboard.press("Escape")
    page.get_by_text("Ladder", exact=True).click()
    expect(page.get_by_text("Upper bounds at the rated clock", exact=False).first).to_be_visible()
    page.get_by_text("Launch and occupancy", exact=True).click()
    expect(page.get_by_text("108 multiprocessors")).to_be_visible()
    page.reload()
    expect(page.get_by_text("108 multiprocessors")).to_be_visible()
    expect(page.get_by_text("per multiprocessor")).to_be_visible()


def test_a_kernel_is_run_in_the_interpreter_and_the_link_keeps_the_step(page, address):
    page.goto(f"{address}/kernels?impl=numba-cuda-naive&gpu=h100-sxm5-80gb")
    strided = page.get_by_text("Warp 0 reads 16 elements of A for its 32 lanes, in 16 sectors of 32 bytes")
    run = page.get_by_role("button", name="Run numba-cuda-naive")
    expect(run.or_(strided)).to_be_visible()
    if run.count():  # else a visitor of the page has run it before
        run.click()
    expect(strided).to_be_visible()
    expect(page.get_by_text("No race and no error.")).to_be_visible()

    page.get_by_role("button", name="Writes out").click()
    expect(page.get_by_text("Warp 0 writes 32 elements of out in 16 sectors")).to_be_visible()
    page.wait_for_url("**step=65**")
    page.reload()
    expect(page.get_by_text("Warp 0 writes 32 elements of out in 16 sectors")).to_be_visible()
