"""Each page under axe: no serious finding in what the page draws."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from gpuexplore.ui.navigation import FIRST_PAGE, pages
from tests.browser.conftest import settle

pytestmark = pytest.mark.browser

STEPS = ("lessons?lesson=how-long", "lessons?lesson=ten-ways-to-be-wrong&step=a")
SERIOUS = ("serious", "critical")
# What pages draw. Left out is what neither they nor a setting decide: code blocks, and Vega's groups without a mark.
OURS = {"include": [["[data-testid=stMain]"]], "exclude": [["[data-testid=stCode]"], ["g.role-mark:empty"]]}


@pytest.mark.parametrize("path", [*pages(), *STEPS])
def test_axe_finds_nothing_serious(page, address, path):
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
