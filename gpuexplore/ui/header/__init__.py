"""The header of every page: tabs of its place, a search over pages, operations, GPUs, lessons and runs, and status."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import copy
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.navigation.page import StreamlitPage

from gpuexplore.core import InvalidInput, StoreUnavailable, once
from gpuexplore.hardware import NEWEST_FIRST
from gpuexplore.operations import OPERATIONS
from gpuexplore.registry import PLACES, Page, features
from gpuexplore.ui.link import parameters
from gpuexplore.ui.navigation import FIRST_PAGE, file_of, pages
from gpuexplore.ui.run.state import own_runs
from gpuexplore.ui.session import known_devices
from gpuexplore.ui.url_widgets import show_problem


def navigation() -> tuple[Page, Mapping[str, StreamlitPage]]:
    """Return the page that is asked for, and what Streamlit has for each, by its name."""
    known = {name: copy(page) for name, page in _streamlit_pages().items()}  # each run marks the one it may draw
    shown = st.navigation(list(known.values()), position="hidden")  # Streamlit's has no places
    name = next(name for name, page in known.items() if page is shown)
    if name not in pages():
        home = _addresses()[name]
        st.switch_page(known[home.name], query_params=parameters() | ({"view": name} if home.also == name else {}))
    return pages()[name], known


@once
def _streamlit_pages() -> Mapping[str, StreamlitPage]:
    """Return a page of Streamlit for each of ours: it looks for the file of each that is made."""
    return {
        name: st.Page(page.file, title=page.title, url_path=name, default=name == FIRST_PAGE)
        for name, page in _addresses().items()
    }


def _addresses() -> Mapping[str, Page]:
    """Return the page that each address shows or leads to: its name, what it was before, and the place it opens."""
    places = {place.lower(): page for place, page in _first_pages().items()}
    return {**places, **{page.also: page for page in pages().values() if page.also}, **pages()}


def _first_pages() -> Mapping[str, Page]:
    return {page.place: page for page in reversed(list(pages().values()))}


def show_places(shown: Page, known: Mapping[str, StreamlitPage]) -> None:
    """Draw a link to each place in the sidebar, that of the page marked."""
    first = _first_pages()
    with st.sidebar:
        st.html(_STYLE)
        with st.container(key="places", gap=None):
            for place, icon in PLACES.items():
                if place in first:  # a feature can be switched off
                    page = shown if shown.place == place else first[place]  # Streamlit marks links to the page shown
                    st.page_link(known[page.name], label=place, icon=f":material/{icon}:", help=first[place].about)


def show_header(shown: Page, known: Mapping[str, StreamlitPage], at: DeltaGenerator) -> Callable[[], None]:
    """Draw the header in its container, and go where its search leads.

    Returns what draws its tabs anew, once the page has changed what they take along.
    """
    tabs = [page for page in pages().values() if page.place == shown.place]
    with at:
        place = st.empty()
        st.space("stretch")
        search = _search()(data=_data(shown), key="search", width="content", on_target_change=lambda: None)
    drawn: dict[str, str] | None = None

    def draw() -> None:
        nonlocal drawn
        carried = {name: value for name, value in parameters().items() if name in ("op", "shape", "calls")}
        if len(tabs) < 2 or carried == drawn:
            return
        drawn = carried
        with place.container(horizontal=True, gap="small"):
            for page in tabs:
                query = {name: value for name, value in carried.items() if name in page.parameters}
                st.page_link(known[page.name], label=page.title, query_params=query, help=page.about)

    draw()
    if search.target:
        _go(search.target)
    return draw


def _go(target: Any) -> None:
    name, _, query = str(target).partition("?")
    if name not in pages():  # no browser of ours sends that
        show_problem(InvalidInput.of("page", name[:60], pages()))
        return
    st.switch_page(file_of(name), query_params=dict(parse_qsl(query)))


@once
def _search() -> Any:
    folder = Path(__file__).parent
    html, css, js = ((folder / f"search.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js"))
    return st.components.v2.component("gpuexplore_search", html=html, css=css, js=js)


def _data(shown: Page) -> bytes:
    """Return what the search needs, as JSON: Streamlit would encode an object twice for each page."""
    here: dict[str, object] = {"page": shown.name, "runs": [], "device": ""}
    with suppress(StoreUnavailable):  # the page says so
        here["runs"] = [[run.title, "Your run", f"benchmark?run={run.id}"] for run in own_runs()[:20]]
        here["device"] = next((device.short_title for device in known_devices()), "")
    return f'{json.dumps(here)[:-1]}, "entries": {_entries()}}}'.encode()


@once
def _entries() -> str:
    """Return what can be found by anyone, as JSON: the words, the kind, and the page with its parameters."""
    found = [[page.title, page.about, page.name] for page in pages().values()]
    for kind, page in (("Benchmark", "benchmark"), ("Predict", "what-if"), ("Which GPU", "which-gpu")):
        found += [[operation.title, kind, f"{page}?op={name}"] for name, operation in OPERATIONS.items()]
    found += [[row.name, "Predict on this GPU", f"what-if?device={row.key}"] for row in NEWEST_FIRST]
    for feature in features():
        if feature.offer:
            found += import_module(feature.offer).entries()
    return json.dumps(found)


_STYLE = """<style>
.st-key-places a { padding: 0.3rem 0.5rem; }
[data-testid="stHeader"] { background: none; }
[data-testid="stHeader"], [data-testid="stHeader"] * { pointer-events: none; }
[data-testid="stHeader"] :is(button, button *, a, a *) { pointer-events: auto; }
[data-testid="stMainBlockContainer"] { padding-top: 0.6rem; }
@media (max-width: 768px) { [data-testid="stMainBlockContainer"] { padding-top: 3.4rem; } }
:has([data-testid="stSidebar"][data-collapsed="true"]) [data-testid="stMainBlockContainer"] { padding-top: 3.4rem; }
:has(> .st-key-header) { order: -1; }
.st-key-header { min-height: 2.4rem; padding-right: 1.5rem; }
[data-testid="stStatusWidget"] { display: none; }
[data-testid="stBaseButton-tertiary"] p { color: light-dark(#1f66b0, #7cbaf5); }
button[data-variant][data-selected="true"] * { color: light-dark(#134a8a, #cfe3fb) !important; }
@media (min-width: 1000px) {
  .st-key-header > :first-child, .st-key-header > :first-child .stHorizontalBlock { flex: none; width: max-content; }
}
@media (max-width: 640px) {
  [data-testid="stElementToolbar"] { display: none; }
  .st-key-header { display: block; position: relative; min-height: 0; padding: 0; }
  .st-key-header > .st-key-search { position: absolute; top: -2.6rem; right: 2.2rem; }
  .st-key-header > :first-child, .st-key-header .stHorizontalBlock { width: 100%; flex-wrap: nowrap; gap: 0; }
  .st-key-header a { padding: 0 0.4rem; }
  .st-key-header a p { font-size: 0.82rem; white-space: nowrap; }
  .stHorizontalBlock { row-gap: 0.5rem; }
  .stHorizontalBlock:has([data-testid="stMetric"]) > .stColumn { min-width: calc(50% - 1rem); }
  [data-testid="stAlertContainer"] { padding: 0.4rem 0.7rem; max-height: 5.5rem; overflow: auto; }
  [data-testid="stAlertContainer"] p { font-size: 0.85rem; line-height: 1.35; }
  .stHorizontalBlock:has(> * > [data-testid="stPopover"]) > [data-testid="stLayoutWrapper"]:first-child {
    min-width: 100%;
  }
}
@media print { [data-testid="stSidebar"], [data-testid="stHeader"], .st-key-header { display: none; } }
@media (prefers-reduced-motion: reduce) { * { animation: none !important; transition: none !important; } }
</style>"""  # the header follows the page in the order of focus: a tab or two lead to what the page is for
