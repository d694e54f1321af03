"""Takes the pictures of the documentation: both pages, light and dark, of one real run of the defaults.

CHROMIUM names the browser; without it Playwright's own is used.
"""

import os
import tempfile
from pathlib import Path

from app_server import CHROMIUM_ARGUMENTS, ROOT, served
from playwright.sync_api import Page, sync_playwright

IMAGES = ROOT / "docs" / "images"
WIDTH, HEIGHT = 1280, 1000
SETTLE_MS = 2500


def main() -> None:
    """Run the defaults once and photograph both pages in both themes."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home, served(Path(home)) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM") or None, args=list(CHROMIUM_ARGUMENTS)
        )
        link = _run_defaults(browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}), address)
        for scheme in ("light", "dark"):
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=scheme)
            _photograph(page, link, IMAGES / f"benchmark-{scheme}.png")
            _photograph(page, f"{address}/devices", IMAGES / f"devices-{scheme}.png")
        browser.close()


def _run_defaults(page: Page, address: str) -> str:
    """Click once, wait until the run is done and return its link; nothing is drawn while it measures."""
    page.goto(address)
    page.get_by_role("button", name="Run 36 points").click()
    page.wait_for_url("**run=**")
    link = page.url
    page.get_by_text("Take it with you").wait_for(timeout=120_000)
    page.close()
    return link


def _photograph(page: Page, address: str, path: Path) -> None:
    page.goto(address)
    page.locator("h1").wait_for()
    page.wait_for_timeout(SETTLE_MS)
    page.screenshot(path=path)
    print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
