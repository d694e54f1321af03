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
WIDTH, HEIGHT, BENCHMARK_HEIGHT = 1280, 1240, 1460  # pixels; the form of Benchmark leaves its charts little room
SETTLE_MS = 2500
LONGEST_MS = 180_000
AT_REST = "[data-test-script-state=notRunning]"  # kernels are compiled at a first look
PATHS = {
    "kernels": "/kernels?impl=numba-cuda-vector&shape=4096",
    "what-if": "/what-if",
    "roofline": "/roofline?dtype=fp32&runs=all",  # each photograph is another visitor, with no runs of its own
    "devices": "/devices",
}


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
            page = browser.new_page(viewport={"width": WIDTH, "height": BENCHMARK_HEIGHT}, color_scheme=scheme)
            _photograph(page, link, IMAGES / f"benchmark-{scheme}.png")
            page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
            for name, path in PATHS.items():
                _photograph(page, f"{address}{path}", IMAGES / f"{name}-{scheme}.png")
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
    page.goto(address, timeout=LONGEST_MS)
    page.locator("h1").wait_for(timeout=LONGEST_MS)
    for _ in range(2):  # the first rest can be the moment before the page begins
        page.wait_for_timeout(SETTLE_MS)
        page.locator(AT_REST).wait_for(timeout=LONGEST_MS)
    page.wait_for_timeout(SETTLE_MS)
    page.screenshot(path=path)
    print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
