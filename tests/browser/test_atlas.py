"""The atlas in a real browser: hovering and clicking a point, reloading, small and dark screens."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import screens, until_seen

pytestmark = pytest.mark.browser
WITHIN = """() => {
    const drawn = [...document.querySelectorAll("[data-testid=stVegaLiteChart] svg")]
    const texts = drawn.flatMap(svg => [...svg.querySelectorAll("text")])
    const legend = texts.filter(it => it.textContent.includes("90 % band"))
    return legend.length && [...drawn, ...legend].every(it => it.getBoundingClientRect().right <= window.innerWidth)
}"""


def chart(page):
    return page.locator("[data-testid=stVegaLiteChart] svg")


def points(page):
    return chart(page).locator("path[aria-label*='published by']")


def test_a_point_tells_its_source_lends_its_shape_and_gives_way_to_another(page, address):
    page.goto(f"{address}/atlas?gpus=h100-sxm5-80gb&show=rate")
    expect(points(page)).to_have_count(62)
    points(page).last.hover()
    tooltip = page.locator("#vg-tooltip-element")
    expect(tooltip).to_contain_text("published by AIConfigurator")
    expect(tooltip).to_contain_text("Apache-2.0")

    source = page.get_by_role("link", name="Open the source")
    until_seen(points(page).last.click, source)
    expect(page).to_have_url(re.compile("point="))
    opened, url = source.get_attribute("href"), page.url
    assert opened.startswith("https://github.com/ai-dynamo/aiconfigurator/")

    page.reload()
    expect(source).to_have_attribute("href", opened)
    expect(page.get_by_text("H100 SXM5 80GB").first).to_be_visible()
    expect(points(page)).to_have_count(62)
    points(page).nth(3).click()
    page.wait_for_url(lambda now: "point=" in now and now != url)
    expect(source).to_have_count(1)

    page.get_by_role("button", name="Use its shape").click()
    page.wait_for_url("**shape=b**")
    page.get_by_role("button", name="Close").click()
    expect(source).to_have_count(0)
    expect(page).not_to_have_url(re.compile("point="))


def test_the_atlas_fits_any_screen(page, address):
    page.goto(f"{address}/atlas?op=matmul")
    expect(chart(page)).to_be_visible()
    expect(page.get_by_role("heading", name="Basis of the predictions")).to_be_visible()
    for _ in screens(page):
        page.wait_for_function(WITHIN)  # charts are drawn anew after the page
