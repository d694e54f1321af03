"""Every page: no serious finding of axe, no request to another host, and nothing wider than its screen."""

from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from gpuexplore.ui.navigation import FIRST_PAGE, pages
from tests.browser.conftest import FITS, HAND, RESTS, settle

pytestmark = pytest.mark.browser

STEPS = ("lessons?lesson=how-long", "lessons?lesson=ten-ways-to-be-wrong&step=a")
SERIOUS = ("serious", "critical")
# What pages draw. Left out is what neither they nor a setting decide: code blocks, and Vega's groups without a mark.
OURS = {"include": [["[data-testid=stMain]"]], "exclude": [["[data-testid=stCode]"], ["g.role-mark:empty"]]}
ICON = "document.querySelector('link[rel~=icon]').href"
REFUSED = """() => new Promise(done => {
    addEventListener("securitypolicyviolation", ({blockedURI: uri}) => uri.includes("elsewhere") && done(uri));
    new Image().src = "https://elsewhere.example/icon.svg";
})"""


@pytest.mark.parametrize("path", [*pages(), *STEPS])
def test_page_is_accessible_asks_no_other_host_and_fits_its_screen(page, address, path):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{address}/{'' if path == FIRST_PAGE else path}")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    settle(page)  # a fragment or a chart may follow what is drawn first

    violations = Axe().run(page, context=OURS).response["violations"]
    assert [
        (violation["id"], node["html"][:200], node["failureSummary"][:300])
        for violation in violations
        if violation["impact"] in SERIOUS
        for node in violation["nodes"]
    ] == []

    page.wait_for_function(FITS)
    page.set_viewport_size(HAND)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(FITS)  # charts are drawn anew first

    page.wait_for_function(RESTS)  # another theme may redraw the page
    asked.append(page.evaluate(ICON))  # which a browser without a window does not fetch
    own = {urlsplit(address).netloc, ""}  # nothing: data and blobs
    assert {url for url in asked if urlsplit(url).netloc not in own} == set()


def test_a_picture_of_another_host_is_refused_by_the_browser(page, address):
    page.goto(f"{address}/memory")
    page.locator("h1").first.wait_for()

    assert page.evaluate(REFUSED) == "https://elsewhere.example/icon.svg"
