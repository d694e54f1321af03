"""Takes the pictures of the documentation: every page, light and dark, of one real run of the defaults.

CHROMIUM names the browser; without it Playwright's own is used.
"""

import os
import tempfile
import time
from pathlib import Path

from app_server import CHROMIUM_ARGUMENTS, LOOK_S, ROOT, database_of, served
from playwright.sync_api import Page, sync_playwright

from gpuexplore.store import open_store

IMAGES = ROOT / "docs" / "images"
WIDTH, HEIGHT = 1280, 1240
SETTLE_MS = 2500


def main() -> None:
    """Run the defaults once and photograph every page in both themes."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home, served(Path(home)) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM") or None, args=list(CHROMIUM_ARGUMENTS)
        )
        link = _start_defaults(browser.new_page(), address)
        _wait_until_done(Path(home), link.rpartition("=")[2])
        for scheme in ("light", "dark"):
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=scheme)
            _photograph(page, link, IMAGES / f"benchmark-{scheme}.png")
            _photograph(page, f"{address}/kernels?impl=numba-cuda-vector&shape=4096", IMAGES / f"kernels-{scheme}.png")
            _photograph(page, f"{address}/devices", IMAGES / f"devices-{scheme}.png")
        browser.close()


def _start_defaults(page: Page, address: str) -> str:
    """Click once and return the run's link; the page is closed, for drawing it would disturb the run."""
    page.goto(address)
    page.get_by_role("button", name="Run 36 points").click()
    page.wait_for_url("**run=**")
    link = page.url
    page.close()
    return link


def _wait_until_done(home: Path, run_id: str) -> None:
    with open_store(database_of(home)) as store:
        while store.load_summary(run_id).active:
            time.sleep(LOOK_S)


def _photograph(page: Page, address: str, path: Path) -> None:
    page.goto(address)
    page.locator("h1").wait_for()
    page.get_by_role("button", name="Stop", exact=True).wait_for(state="hidden")  # kernels are compiled at a first look
    page.wait_for_timeout(SETTLE_MS)
    page.screenshot(path=path)
    print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
