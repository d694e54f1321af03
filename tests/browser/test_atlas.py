"""The atlas in a real browser: hovering and clicking a point, reloading, small and dark screens."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import until_seen

pytestmark = pytest.mark.browser

H100 = "/atlas?gpus=h100-sxm5-80gb&show=rate"


def chart(page):
    return page.locator("[data-testid=stVegaLiteChart] svg")


def points(page):
    return chart(page).locator("path[aria-label*='published by']")


def click(page):
    """Click the last point until the page shows it; return the source that it links to."""
    source = page.get_by_role("link", name="Open the source")
    until_seen(points(page).last.click, source)
    return source.get_attribute("href")


def test_hovering_a_point_tells_its_source_and_a_click_links_to_it_also_after_a_reload(page, address):
    page.goto(f"{address}{H100}")
    expect(points(page)).to_have_count(62)

    points(page).last.hover()
    tooltip = page.locator("#vg-tooltip-element")
    expect(tooltip).to_contain_text("published by AIConfigurator")
    expect(tooltip).to_contain_text("Apache-2.0")

    source = click(page)
    assert source.startswith("https://github.com/ai-dynamo/aiconfigurator/")
    expect(page).to_have_url(re.compile("point="))

    page.reload()
    expect(page.get_by_role("link", name="Open the source")).to_have_attribute("href", source)
    expect(page.get_by_text("H100 SXM5 80GB").first).to_be_visible()


def test_the_shape_of_a_point_is_used_and_the_point_closed(page, address):
    page.goto(f"{address}{H100}")
    expect(points(page)).to_have_count(62)
    click(page)

    page.get_by_role("button", name="Use its shape").click()
    page.wait_for_url("**shape=b**")
    page.get_by_role("button", name="Close").click()
    expect(page.get_by_role("link", name="Open the source")).to_have_count(0)
    expect(page).not_to_have_url(re.compile("point="))


def test_another_point_takes_the_place_of_the_one_of_the_link(page, address):
    page.goto(f"{address}{H100}")
    expect(points(page)).to_have_count(62)
    click(page)
    before = page.url
    page.reload()
    expect(points(page)).to_have_count(62)

    points(page).nth(3).click()
    page.wait_for_url(lambda url: "point=" in url and url != before)
    expect(page.get_by_role("link", name="Open the source")).to_have_count(1)


def test_the_atlas_is_offered_on_the_start_page_of_a_machine_without_a_gpu(page, address):
    page.goto(address)
    offer = page.get_by_role("button", name=re.compile("See a linear layer on"))
    until_seen(offer.click, page.get_by_role("heading", level=1, name="Atlas"))
    expect(page).to_have_url(re.compile(r"/atlas\?op=linear$"))


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_atlas_fits_any_screen(visitor, address, scheme, width):
    page = visitor(width, color_scheme=scheme)
    page.goto(f"{address}/atlas?op=matmul")
    expect(chart(page)).to_be_visible()
    expect(page.get_by_role("heading", name="Basis of the predictions")).to_be_visible()
    main = page.locator("[data-testid=stMain]")
    assert main.evaluate("it => it.scrollWidth <= it.clientWidth")
    assert chart(page).evaluate("it => it.getBoundingClientRect().right <= window.innerWidth")
    legend = chart(page).get_by_text("predicted, with its 90 % band")
    assert legend.evaluate("it => it.getBoundingClientRect().right <= window.innerWidth")
