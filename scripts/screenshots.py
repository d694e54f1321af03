"""Takes the pictures of the documentation: every page, light and dark, of two real runs of the defaults and a queue.

CHROMIUM names the browser; without it Playwright's own is used.
"""

import os
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from app_server import CHROMIUM_ARGUMENTS, LOOK_S, ROOT, database_of, served
from playwright.sync_api import Browser, Page, sync_playwright

from gpuexplore.core.model import Experiment, Options, Shape
from gpuexplore.store import Description, Store, open_store

IMAGES = ROOT / "docs" / "images"
WIDTH, HEIGHT = 1280, 1240  # pixels
RUN_HEIGHT, LIST_HEIGHT, QUEUE_HEIGHT = 1100, 620, 960  # a run with its first sentences; a short list, a short queue
SCHEMES = ("light", "dark")
SETTLE_MS = 2500
LONGEST_MS = 180_000
AT_REST = "[data-test-script-state=notRunning]"
AT_WORK = re.compile("in some seconds|In progress")  # stands on a kernel's page while it is compiled or run
PATHS = {
    "explore": "/",
    "kernels": "/kernels?impl=numba-cuda-vector&shape=4096&tab=launch",
    "machine-code": "/kernels?impl=numba-cuda-vector&shape=4096&tab=code",
    "interpreter": "/kernels?tab=interpreter",
    "what-if": "/what-if",
    "roofline": "/roofline?dtype=fp32&runs=all",  # each photograph is another visitor, with no runs of its own
    "atlas": "/atlas",
    "devices": "/devices",
    "fact-check": "/fact-check",
    "model": "/model",
    "tensors": "/tensors",
    "timing-mistakes": "/timing-mistakes?mistake=no-synchronise",
}
LESSON = "/lessons?lesson=how-long&step=d"
TRACE = ROOT / "tests/features/trace/analysis/data/encoder_layer.json.gz"  # of a step of a transformer's layer


def main() -> None:
    """Run the defaults twice and photograph every page in both themes, last the queue while it is long."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home, served(Path(home)) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM") or None, args=list(CHROMIUM_ARGUMENTS)
        )
        with open_store(database_of(Path(home))) as store:
            before, after = (_run_defaults(browser, address, store) for _ in range(2))
            store.describe(before, "", Description(title="Before the fan was cleaned", tags="lab, monday"), admin=True)
            runs = {
                "benchmark": (f"/benchmark?run={after}", RUN_HEIGHT),
                "runs": ("/runs", LIST_HEIGHT),
                "compare": (f"/compare?a={before}&b={after}", RUN_HEIGHT),
                "present": (f"/benchmark?run={after}&view=present&slide=4", RUN_HEIGHT),
            }
            for scheme in SCHEMES:
                page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=scheme)
                for name, (path, height) in runs.items():
                    page.set_viewport_size({"width": WIDTH, "height": height})
                    _photograph(page, f"{address}{path}", IMAGES / f"{name}-{scheme}.png")
                page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
                for name, path in PATHS.items():
                    _photograph(page, f"{address}{path}", IMAGES / f"{name}-{scheme}.png")
                _do_step(page, f"{address}{LESSON}")
                _photograph(page, f"{address}{LESSON}", IMAGES / f"lessons-{scheme}.png")
                _photograph_trace(page, f"{address}/trace?device=cpu", IMAGES / f"trace-{scheme}.png")
            _fill_queue(store)
            page = browser.new_page(viewport={"width": WIDTH, "height": QUEUE_HEIGHT})
            _press_run(page, address)
            for scheme in SCHEMES:
                page.emulate_media(color_scheme=scheme)
                _photograph(page, f"{address}/queue", IMAGES / f"queue-{scheme}.png")
        browser.close()


def _run_defaults(browser: Browser, address: str, store: Store) -> str:
    """Run the defaults and return the run's id; the page is closed, for drawing it would disturb the run."""
    page = browser.new_page()
    _press_run(page, address)
    run_id = page.url.rpartition("=")[2]
    page.close()
    _wait_until(lambda: not store.load_summary(run_id).active)
    return run_id


def _press_run(page: Page, address: str) -> None:
    page.goto(f"{address}/benchmark")
    page.get_by_role("button", name="Run 36 points").click()
    page.wait_for_url("**run=**")


def _do_step(page: Page, address: str) -> None:
    """Guess in a step of a lesson, and wait for the verdict."""
    page.goto(address, timeout=LONGEST_MS)
    page.get_by_role("radiogroup").get_by_text("torch", exact=True).click(timeout=LONGEST_MS)
    page.get_by_role("button", name="Run, about").click()
    page.get_by_text("Keep:").wait_for(timeout=LONGEST_MS)


def _fill_queue(store: Store) -> None:
    """Let others measure and wait; the first one's later groups take a minute."""
    running = store.submit(_products(1024, 4096, 4608, 5120, budget_s=30), "somebody", estimated_s=60)
    _wait_until(lambda: store.load_summary(running).progress.done >= 1)
    for visitor in ("a second", "a third"):
        store.submit(_products(256, 512, 1024), visitor, estimated_s=2)


def _products(*sizes: int, budget_s: float = 0.5) -> Experiment:
    shapes = tuple(Shape.of(m=size, k=size, n=size) for size in sizes)
    return Experiment("matmul", shapes, ("fp32",), ("numpy",), options=Options(budget_s=budget_s))


def _wait_until(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(LOOK_S)


def _photograph_trace(page: Page, address: str, path: Path) -> None:
    """Upload a trace and photograph what it says."""
    page.goto(address, timeout=LONGEST_MS)
    page.get_by_role("button", name="Upload a trace").click(timeout=LONGEST_MS)
    page.locator("input[type=file]").set_input_files(TRACE, timeout=LONGEST_MS)
    page.get_by_text("Recorded example").wait_for(state="hidden", timeout=LONGEST_MS)
    page.keyboard.press("Escape")
    _save(page, path)


def _photograph(page: Page, address: str, path: Path) -> None:
    page.goto(address, timeout=LONGEST_MS)
    page.locator("h1").wait_for(timeout=LONGEST_MS)
    for _ in range(2):  # the first rest can be the moment before the page begins
        page.wait_for_timeout(SETTLE_MS)
        page.locator(AT_REST).wait_for(timeout=LONGEST_MS)
        for button in page.get_by_role("button", name="Run numba-cuda-naive").all():  # of the interpreter
            button.click()
        while page.get_by_text(AT_WORK).count():
            page.wait_for_timeout(SETTLE_MS)
    if anchor := address.partition("#")[2]:
        for _ in range(2):  # what stands above it is drawn when it comes into view, and is longer then
            page.locator(f"#{anchor}").evaluate("heading => heading.scrollIntoView()")
            page.wait_for_timeout(SETTLE_MS)
    _save(page, path)


def _save(page: Page, path: Path) -> None:
    page.wait_for_timeout(SETTLE_MS)
    page.screenshot(path=path)
    print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
