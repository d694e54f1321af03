"""Pages ask nobody but their own server: in a laboratory without a way out fonts, icons and charts are there."""

from urllib.parse import urlsplit

import pytest

from gpuexplore.ui.navigation import pages
from tests.browser.conftest import AT_REST

pytestmark = pytest.mark.browser
NAMES = sorted(pages())
ICON = "document.querySelector('link[rel~=icon]').href"
REFUSED = """() => new Promise(done => {
    addEventListener("securitypolicyviolation", ({blockedURI: uri}) => uri.includes("elsewhere") && done(uri));
    new Image().src = "https://elsewhere.example/icon.svg";
})"""


def test_no_page_asks_another_host(page, address):
    asked, icons = [], set()
    page.on("request", lambda request: asked.append(request.url))
    for name in NAMES:
        page.goto(f"{address}/{'' if name == 'benchmark' else name}")
        page.locator("h1").first.wait_for()
        page.locator(AT_REST).wait_for()
        icons.add(page.evaluate(ICON))  # which a browser without a window does not fetch
    own = {urlsplit(address).netloc, ""}  # nothing: data and blobs

    assert len(NAMES) > 15
    assert {url for url in (*asked, *icons) if urlsplit(url).netloc not in own} == set()


def test_a_picture_of_another_host_is_refused_by_the_browser(page, address):
    page.goto(f"{address}/memory")
    page.locator("h1").first.wait_for()

    assert page.evaluate(REFUSED) == "https://elsewhere.example/icon.svg"
