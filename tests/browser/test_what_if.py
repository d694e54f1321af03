import re
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from gpuexplore.ui.what_if.choice import NOTEBOOK
from tests.browser.conftest import screens

pytestmark = pytest.mark.browser


def headline(page):
    return page.locator("h4").first


def edit(page):
    """Open the choices, which lie behind the line that names them."""
    page.get_by_role("button", name="Edit").click()


def charts(page):
    return page.locator("[data-testid=stVegaLiteChart]")


def test_a_deep_link_is_restored_changed_and_sent_to_somebody_else(page, address, visitor):
    page.goto(f"{address}/what-if?what=block&seq=1024&device=a100-sxm4-80gb&gpus=t4&dtype=fp32,bf16&per=energy")
    expect(headline(page)).to_contain_text("On A100 SXM4 80GB, bf16 is predicted to be")
    edit(page)
    expect(page.get_by_label("Sequence", exact=True)).to_have_value("1024")

    page.get_by_label("Device", exact=True).click()
    page.keyboard.type("H200 SXM")
    page.keyboard.press("Enter")
    page.wait_for_url("**device=h200-sxm-141gb**")
    expect(headline(page)).to_contain_text("On H200 SXM")
    expect(charts(page)).to_have_count(4)
    said = headline(page).inner_text()

    other = visitor()
    other.goto(page.url)
    expect(headline(other)).to_have_text(said)
    edit(other)
    expect(other.get_by_label("Sequence", exact=True)).to_have_value("1024")


def test_kinds_of_workload_are_a_click_away_and_go_back_and_so_is_the_notebooks_t4(page, address):
    page.goto(f"{address}/what-if")
    expect(headline(page)).to_contain_text("On H100 SXM5 80GB")
    edit(page)
    page.get_by_role("radio", name="A transformer block").click()
    page.wait_for_url("**what=block**")
    expect(page.get_by_text("Transformer block, 4 × 2,048 tokens")).to_be_visible()
    page.go_back()
    expect(page.get_by_text("Matrix multiplication, 4,096")).to_be_visible()

    page.get_by_role("button", name="A notebook's T4").click()
    page.wait_for_url("**device=t4**")
    expect(headline(page)).to_contain_text("On Tesla T4, fp16 is predicted to be")
    expect(page.get_by_text(re.compile("took 2.2 times as long as fp32"))).to_be_visible()
    expect(page.get_by_text(re.compile("with a peak of 65.0 TFLOP/s"))).to_be_visible()
    expect(charts(page).first).to_be_visible()
    expect(page.locator("[aria-label*='63.5 %']").first).to_be_attached()

    page.reload()
    edit(page)
    expect(page.get_by_label("Shape", exact=True)).to_have_value("notebook-linear")
    expect(page.get_by_label("Times measured elsewhere (s)", exact=True)).to_have_value("fp32:1.7327,bf16:3.874")


def test_what_is_measured_here_replaces_what_was_predicted(page, address):
    page.goto(f"{address}/what-if?device=cpu&gpus=&shape=96&dtype=fp64,fp32")
    page.get_by_role("button", name=re.compile("Measure it here")).click()
    page.wait_for_url("**measuring=**")
    expect(page.get_by_role("button", name="Cancel")).to_have_count(0)
    expect(headline(page)).not_to_contain_text("predicted")
    expect(page.get_by_role("button", name=re.compile("Measure it here"))).to_have_count(0)
    expect(page.locator("[aria-label*='measured']").first).to_be_attached()


def test_the_page_never_scrolls_sideways(page, address):
    page.goto(f"{address}/what-if?{urlencode(NOTEBOOK)}")
    expect(headline(page)).to_be_visible()
    expect(charts(page)).to_have_count(4)
    for _ in screens(page):
        expect(charts(page)).to_have_count(4)
