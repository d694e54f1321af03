"""The way back to one's runs: the last five in the sidebar, and the newest one on the bare start page."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime

import streamlit as st

from gpuexplore.errors import NotFound, StoreUnavailable
from gpuexplore.store import ListedRun, Wanted
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.navigation import file_of
from gpuexplore.ui.session import owner, store
from gpuexplore.ui.shared import Shared, moment
from gpuexplore.units import format_whole_seconds

SHOWN = 5
LONGEST = 34  # characters that the sidebar has room for
LOOKS = 5
OWN: Shared[Sequence[ListedRun]] = Shared(1000)
OTHERS: Shared[str] = Shared(1000)
DAY_S = 86_400
# Streamlit marks every link to the page that is shown, whichever run it leads to
UNMARKED = (
    "<style>.st-key-recent-runs a:not(:hover) {background: none} .st-key-recent-runs a * {font-weight: 400}</style>"
)


def recent_runs() -> Sequence[ListedRun]:
    """Return the visitor's newest runs; none while the database is away."""
    name = owner()
    try:
        return OWN.get((name, moment(LOOKS)), lambda: store().listed(Wanted(owner=name), limit=SHOWN))
    except StoreUnavailable:
        return ()


def show_recent_runs() -> None:
    """Draw links to the visitor's last runs in the sidebar, the one that is shown marked."""
    runs, shown = recent_runs(), st.query_params.get("run", "")
    with st.sidebar, st.container(key="recent-runs"):
        st.html(UNMARKED)
        if shown and shown not in [run.id for run in runs] and (title := _title(shown)):
            _link(shown, title, ":material/radio_button_checked:")
        if runs:
            st.caption("Your last runs")
        for run in runs:
            icon = ":material/radio_button_checked:" if run.id == shown else ":material/history:"
            _link(run.id, run.title, icon)


def _link(run_id: str, title: str, icon: str) -> None:
    st.page_link(file_of("benchmark"), label=plain(_short(title)), icon=icon, query_params={"run": run_id})


def _title(run_id: str) -> str | None:
    """Return the title of a run of the store that is somebody else's; None of what is not there."""
    with suppress(NotFound, StoreUnavailable):
        return OTHERS.get((run_id, moment(LOOKS)), lambda: store().listed_run(run_id).title)
    return None


def offer_to_go_on() -> None:
    """Offer the visitor's newest run, on a page that shows none."""
    runs = recent_runs()
    if not runs:
        return
    newest = runs[0]
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        st.markdown(f"Go on with **{plain(newest.title)}**, {_ago(newest.created_utc)}?", width="content")
        st.button("Open", icon=":material/visibility:", key="recent.open", on_click=_open, args=(newest.id,))


def _open(run_id: str) -> None:
    st.query_params["run"] = run_id


def _short(title: str) -> str:
    return title if len(title) <= LONGEST else f"{title[: LONGEST - 2]} …"


def _ago(when_utc: str) -> str:
    age_s = (datetime.now(UTC) - datetime.fromisoformat(when_utc)).total_seconds()
    if age_s >= DAY_S:
        days = int(age_s // DAY_S)
        return "yesterday" if days == 1 else f"{days} days ago"
    return f"{format_whole_seconds(max(age_s, 1.0))} ago"
