"""The head of a run, its title, device, date, badge, files and commands; and the way back to a visitor's last runs."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gpuexplore.analysis.run.summary import quality_of
from gpuexplore.charts.exports import EXPORTS, Exported, export
from gpuexplore.core import NotFound, Run, StoreUnavailable
from gpuexplore.core.naming import LONGEST_NOTE, LONGEST_TITLE, default_title
from gpuexplore.recorded import recording_of_run
from gpuexplore.request import as_command, as_python, from_experiment
from gpuexplore.store import Description, ListedRun
from gpuexplore.ui import link
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.navigation import file_of
from gpuexplore.ui.roles import is_admin
from gpuexplore.ui.run.comparison import as_linked
from gpuexplore.ui.run.recorded import ICON, RECORDED, origin_words, show_badge
from gpuexplore.ui.run.state import describe, own_runs
from gpuexplore.ui.session import owner, store
from gpuexplore.ui.shared import shared_values


def _show_badge_of(run: Run) -> None:
    """Draw the badge of a run of the store, a word with the reason for it; none before anything was measured."""
    if run.origin:
        st.badge(
            "imported", icon=":material/upload_file:", color="blue", help=plain(f"Measured elsewhere: {run.origin}")
        )
        return
    quality, why = quality_of([result for result in run.results if result.measurement])
    if quality is None or why is None:
        return
    badges: Mapping[str, tuple[str, Literal["green", "orange", "gray"]]] = {
        "clean": (":material/verified:", "green"),
        "noisy": (":material/graphic_eq:", "orange"),
        "contended": (":material/group_work:", "gray"),
    }
    icon, color = badges[quality]
    st.badge(quality, icon=icon, color=color, help=plain(f"{why[0].upper()}{why[1:]}"))


def _offer_files(run: Run) -> None:
    """Draw a button for each type of file, and the command and the lines of Python that repeat the run."""
    analyze = as_linked(run)

    def content(suffix: str) -> bytes:
        """Return a file, which is made only when it is asked for."""
        return export(suffix, Exported(run.experiment, analyze(), run))

    with st.container(horizontal=True):
        for suffix, kind in EXPORTS.items():
            st.download_button(
                kind.label,
                partial(content, suffix),
                file_name=f"gpuexplore-{run.experiment.operation}-{run.id}{suffix}",
                mime=kind.mime,
                icon=":material/download:",
                on_click="ignore",
                key=f"export{suffix}.{run.id}",
            )
    request = from_experiment(run.experiment)
    st.caption("The same run as a command, and in Python:")
    st.code(as_command(request), language="bash", wrap_lines=True)
    st.code(as_python(request), language="python", wrap_lines=True)


def title_of(run: Run) -> str:
    """Return what a run is called: its title, or for one that is not in the store what it measures."""
    return run.title or default_title(run.experiment)


def show_head(run: Run, container: DeltaGenerator) -> None:
    """Draw the head of a run in `container`, and call the browser's tab as it is called."""
    title = title_of(run)
    st.set_page_config(page_title=f"{title} · gpuexplore")
    with container:
        st.title(plain(title), anchor=False)
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            if recording_of_run(run.id) is None:
                _draw_facts(run)
            for tag in run.tags:
                st.badge(plain(tag), color="gray")
            st.space("stretch")
            _draw_actions(run)
        show_badge(run)
        if run.note:
            st.markdown(plain(run.note))


def show_small_head(run: Run) -> None:
    """Draw the head of a run in a line on a page of something else, with the way to its own."""
    with st.container(border=True, horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**{plain(title_of(run))}**", width="content")
        _draw_facts(run)
        st.space("stretch")
        if st.button("Open", icon=":material/visibility:", help="Its own page: rename, present, export"):
            st.switch_page(file_of("benchmark"), query_params={"run": run.id})
        if _is_whole(run):
            _offer_comparison(run)


def _draw_facts(run: Run) -> None:
    recording = recording_of_run(run.id)
    if recording is None:
        _show_badge_of(run)
        st.caption(" · ".join(facts_of(run)), width="content")
    else:
        st.badge("recorded", icon=ICON, color="violet", help=RECORDED)
        st.markdown(origin_words(recording, run), width="content")


def _draw_actions(run: Run) -> None:
    if run.title and (run.owner == owner() or is_admin()):
        with st.popover("Rename", icon=":material/edit:"):
            st.text_input("Title", run.title, key=f"head.title.{run.id}", max_chars=LONGEST_TITLE)
            st.text_input(
                "Tags",
                ", ".join(run.tags),
                key=f"head.tags.{run.id}",
                placeholder="lab, monday",
                help="Comma-separated words; the page Runs can search for them",
            )
            st.text_area("Note", run.note, key=f"head.note.{run.id}", max_chars=LONGEST_NOTE)
            st.button("Save", type="primary", key=f"head.save.{run.id}", on_click=_save, args=(run.id,))
    st.fragment(_offer_link)()
    if not _is_whole(run):
        return
    _offer_comparison(run)
    st.button("Present", icon=":material/slideshow:", on_click=link.write, args=("view", "present"))
    with st.popover("Export", icon=":material/download:"):
        _offer_files(run)


def _offer_link() -> None:
    """Draw the link to this view as the chart is now."""
    """Draw the link to this view as the chart is now."""
    with st.popover("Copy link", icon=":material/link:", key="head.link", on_change="rerun"):
        st.caption("A link to this view: the run, its comparison, and the chart.")
        st.code(link.address(), language=None, wrap_lines=True)


def _is_whole(run: Run) -> bool:
    """Return whether a run has ended with something measured."""
    return not run.active and any(result.measurement for result in run.results)


def _offer_comparison(run: Run) -> None:
    if st.button("Compare with …", icon=":material/balance:"):
        asked = {"a": before, "b": run.id} if (before := _run_before(run)) else {"b": run.id}
        st.switch_page(file_of("compare"), query_params=asked)


def _run_before(run: Run) -> str | None:
    """Return the visitor's newest earlier run of the same request; None where there is none with a result."""
    same = (other for other in store().history(owner(), limit=50) if other.experiment == run.experiment)
    earlier = (other for other in same if (other.created_utc or "") < (run.created_utc or "") and other.progress.done)
    return next((other.id for other in earlier), None)


def facts_of(run: Run) -> list[str]:
    """Return where and when a run was measured, as Markdown; of an imported one whence it came, and on what."""
    devices = dict.fromkeys(
        result.environment.device.title for result in run.results if result.measurement and result.environment
    )
    where = run.origin or ", ".join(devices) or ", ".join(run.experiment.devices)
    when = run.created_utc or next((at.started_utc for result in run.results if (at := result.environment)), "")
    return [plain(fact) for fact in (where, f"{when[:16].replace('T', ' ')} UTC" if when else "") if fact]


def _save(run_id: str) -> None:
    given = {name: str(st.session_state.get(f"head.{name}.{run_id}", "")) for name in ("title", "tags", "note")}
    describe(run_id, Description(**given))


def _recent_runs() -> Sequence[ListedRun]:
    """Return the visitor's newest runs; none while the database is away."""
    try:
        return own_runs()[:5]
    except StoreUnavailable:
        return ()


def show_recent_runs() -> None:
    """Draw links to the visitor's last runs in the sidebar, the one that is shown marked."""
    runs = _recent_runs()
    shown = st.query_params.get("run", "")
    with st.sidebar, st.container(key="recent-runs"):
        # Streamlit marks every link to the page that is shown, whichever run it leads to
        st.html(
            "<style>.st-key-recent-runs a:not(:hover) {background: none} "
            ".st-key-recent-runs a * {font-weight: 400}</style>"
        )
        if shown and shown not in [run.id for run in runs]:
            with suppress(NotFound, StoreUnavailable):
                _link(shown, _title_of_another(shown), ":material/radio_button_checked:")
        if runs:
            st.caption("Your last runs")
        for run in runs:
            icon = ":material/radio_button_checked:" if run.id == shown else ":material/history:"
            _link(run.id, run.title, icon)


def _link(run_id: str, title: str, icon: str) -> None:
    st.page_link(
        file_of("benchmark"),
        label=plain(title if len(title) <= 34 else f"{title[:32]} …"),  # so many fit the sidebar
        icon=icon,
        query_params={"run": run_id},
    )


@shared_values(1000, looks=5)
def _title_of_another(run_id: str) -> str:
    """Return the title of another owner's run of the store."""
    return store().listed_run(run_id).title
