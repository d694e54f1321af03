"""How long a page takes from a click until a browser has drawn it, beside plain Streamlit pages of the same kind.

    python -m benchmarks.pages [--turns N] [--busy]
    python -m benchmarks.pages --requests 30,100 [--root PATH]

Served from a home with 202 runs, two of 36 results, and driven in a real Chromium (`CHROMIUM`, or the path's): in each
turn the list of runs is opened by its link, a run by its own, presented, led a step on and left, and compared with
another one. Drawn is when its text, its charts and its tables are there and the script of the page has ended, looked
at with every frame of the browser. The peer, two pages of plain Streamlit, is clicked in a tab beside it in turns. The
first turn, in which a tab loads the scripts that charts and tables need, is reported apart; `new tab` opens a page by
its address. With `--busy` another process computes meanwhile. It asserts nothing.

With `--requests` so many visitors each open every page with a request of their own (`benchmarks.own_requests`), by
Streamlit's protocol and without a browser: what the server computes for a first request.
"""

import argparse
import os
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from playwright.sync_api import Page, sync_playwright

from benchmarks.bias import busy_loop
from benchmarks.own_requests import measure
from gpuexplore.core.model import Experiment, Result, Shape
from gpuexplore.recorded import recordings
from gpuexplore.store import Description, open_store
from gpuexplore.ui.identity import OWNER_COOKIE
from scripts.app_server import CHROMIUM_ARGUMENTS, ROOT, database_of, served, streamlit_served

AIM_S = 1.0
RUNS = 200
SIZES = (64, 128, 256, 384)
ASKED = Experiment(
    "matmul",
    tuple(Shape.of(m=n, k=n, n=n) for n in SIZES),
    ("fp32", "bf16", "fp16"),
    ("numpy", "numba-cpu", "torch"),
)
HEADER, ROW, TICK_X = 34, 33, 18  # pixels of the table
WINDOW = {"width": 1440, "height": 900}
LONGEST_MS = 30_000
# A page is drawn when its script has ended and what it shows has come: elements that Streamlit keeps from the page
# before are marked stale meanwhile.
DRAWN = """([text, charts, tables]) => {
    const main = document.querySelector('[data-testid=stMain]');
    if (!main || !document.querySelector('[data-test-script-state=notRunning]')) return false;
    if (main.querySelector('[data-stale=true], [data-testid=stSkeleton]')) return false;
    const tall = (found) => [...found].filter((each) => each.getBoundingClientRect().height > 50).length;
    return main.innerText.includes(text)
        && tall(main.querySelectorAll('[data-testid=stVegaLiteChart] :is(svg, canvas)')) >= charts
        && tall(main.querySelectorAll('[data-testid=stDataFrame] canvas')) >= tables;
}"""


@dataclass(slots=True)
class Watch:
    """Times of steps in one tab.

    Attributes:
        page: the tab.
        times_s: seconds from a click to the drawn page, by step, in the order of the turns.
    """

    page: Page
    times_s: dict[str, list[float]] = field(default_factory=dict)

    def time(self, step: str, act: Callable[[], Any], text: str, *, charts: int = 0, tables: int = 0) -> None:
        """Act, and note how long it took until a page with these words, charts and tables was drawn."""
        began = time.perf_counter()
        act()
        self.page.wait_for_function(DRAWN, arg=[text, charts, tables], polling="raf", timeout=LONGEST_MS)
        self.times_s.setdefault(step, []).append(time.perf_counter() - began)


def main() -> None:
    """Click through both and print a line for each step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--busy", action="store_true", help="beside a process that computes all the time")
    parser.add_argument("--requests", help="numbers of visitors with a request of their own each, like 30,100")
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout to serve with --requests")
    given = parser.parse_args()
    if given.requests:
        measure([int(count) for count in given.requests.split(",")], given.root)
        return
    with busy_loop() if given.busy else nullcontext(), tempfile.TemporaryDirectory() as folder, _browser() as opened:
        home = Path(folder)
        with served(home) as address, streamlit_served(home, "benchmarks/peer_pages.py") as (_, peer_address):
            ours, peer = Watch(opened()), Watch(opened())
            ours.page.goto(address)
            run = _fill(home, ours.page)
            peer.page.goto(peer_address)
            for turn in range(given.turns):
                for act in random.Random(turn).sample([lambda: _turn(ours, run[1]), lambda: _peer_turn(peer)], 2):
                    act()
            for _ in range(3):
                _new_tabs(ours, address, run)
                _new_tabs(peer, peer_address, None)
    _print(ours.times_s, peer.times_s)


def _turn(watch: Watch, title: str) -> None:
    page = watch.page
    link = page.get_by_test_id("stSidebar").get_by_role("link")
    watch.time("Runs", link.filter(has_text="Runs").first.click, "Older", tables=1)
    watch.time("a run", link.filter(has_text=title).click, title, charts=1)
    watch.time("present", page.get_by_role("button", name="Present").click, "1 of ")
    watch.time("its next step", lambda: page.keyboard.press("ArrowRight"), "2 of ", charts=1)
    watch.time("back to the run", lambda: page.keyboard.press("Escape"), title, charts=1)
    link.filter(has_text="Runs").first.click()
    page.wait_for_function(DRAWN, arg=["Older", 0, 1], polling="raf", timeout=LONGEST_MS)
    for row, words in enumerate(("1 run ticked.", "2 runs ticked.")):
        if words not in page.inner_text("[data-testid=stMain]") and "2 runs ticked." not in page.inner_text("body"):
            _tick(page, row)
            page.wait_for_function(DRAWN, arg=[words, 0, 1], polling="raf", timeout=LONGEST_MS)
    watch.time("compare", page.get_by_role("button", name="Compare").click, "Of 36 cases", charts=1)


def _tick(page: Page, row: int) -> None:
    """Click the box of a row, which a canvas draws."""
    box = page.locator("[data-testid=stDataFrame] canvas").first.bounding_box()
    assert box is not None, "the table was waited for"
    page.mouse.click(box["x"] + TICK_X, box["y"] + HEADER + ROW * (row + 0.5))


def _peer_turn(watch: Watch) -> None:
    link = watch.page.get_by_test_id("stSidebar").get_by_role("link")
    watch.time("Runs", link.filter(has_text="Runs").click, "Runs", tables=1)
    watch.time("a run", link.filter(has_text="A run").click, "A run", charts=1, tables=1)


def _new_tabs(watch: Watch, address: str, run: tuple[str, str] | None) -> None:
    """Open the list and the run in new tabs of the same browser."""
    run_path, title = (f"benchmark?run={run[0]}", run[1]) if run else ("run", "A run")
    for step, path, text, charts in (("Runs", "runs", "Runs", 0), ("a run", run_path, title, 1)):
        page = watch.page.context.new_page()
        tab = Watch(page, watch.times_s)
        tab.time(
            f"new tab: {step}",
            lambda page=page, path=path: page.goto(f"{address}/{path}"),
            text,
            charts=charts,
            tables=1 - charts,
        )
        page.close()


def _fill(home: Path, page: Page) -> tuple[str, str]:
    """Store the runs for this tab's browser, the last two with 36 results; return id and title of the newest."""
    page.wait_for_function(DRAWN, arg=["Benchmark", 0, 0], timeout=LONGEST_MS)
    (owner,) = [each["value"] for each in page.context.cookies() if each["name"] == OWNER_COOKIE]
    with open_store(database_of(home)) as store:
        results = _results()
        small = replace(ASKED, shapes=ASKED.shapes[:1], dtypes=ASKED.dtypes[:1])
        for _ in range(RUNS):
            store.record(small, "others", results=results[:3])
        titles = {store.record(ASKED, owner, results=results): title for title in ("last week's", "today's")}
        for run_id, title in titles.items():
            store.describe(run_id, owner, Description(title=title))
    return run_id, title


def _results() -> list[Result]:
    """Return 36 results of the recording of a CPU, as if the form's own request had been measured."""
    found = [each for recording in recordings() for each in recording.results if each.case.device == "cpu"]
    template = next(each for each in found if each.measurement and each.case.operation == "matmul")
    return [replace(template, case=case) for case in ASKED.cases()]


@contextmanager
def _browser() -> Iterator[Callable[[], Page]]:
    """Yield what opens a tab with cookies of its own."""
    path = os.environ.get("CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(CHROMIUM_ARGUMENTS))
        yield lambda: browser.new_context(viewport=WINDOW).new_page()
        browser.close()


def _print(ours: Mapping[str, list[float]], peer: Mapping[str, list[float]]) -> None:
    print(f"{'from the click to the drawn page, s':36}{'first':>8}{'median':>8}{'most':>8}   plain Streamlit")
    for step, times in ours.items():
        beside = peer.get(step)
        print(f"{step:36}{_words(times)}   {_words(beside) if beside else ''}")
    print(f"aim {AIM_S:.1f} s")


def _words(times: list[float]) -> str:
    first, rest = times[0], times[1:] or times
    return f"{first:8.2f}{median(rest):8.2f}{max(rest):8.2f}"


if __name__ == "__main__":
    main()
