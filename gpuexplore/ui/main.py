"""The frame around every page: navigation. Titles belong to the pages."""

import time
from pathlib import Path

import streamlit as st

from gpuexplore.core.errors import GpuExploreError, StoreUnavailable
from gpuexplore.ui.header import navigation, show_header, show_places
from gpuexplore.ui.identity import show_account
from gpuexplore.ui.navigation import FIRST_PAGE
from gpuexplore.ui.present import is_presented
from gpuexplore.ui.roles import show_role
from gpuexplore.ui.run_head import show_recent_runs
from gpuexplore.ui.session import RETRY_S, SUPERVISOR_DUE, draw_once_back, draw_once_writable, note_visit
from gpuexplore.ui.shared.later import redrawn
from gpuexplore.ui.shared.pace import wait_for_samples
from gpuexplore.ui.turns import PAGE_LIMIT, page_drawn_in_turn
from gpuexplore.ui.url_widgets import show_problem

ICON = Path(__file__).with_name("icon.svg")


def _is_bare() -> bool:
    """Return whether the page is shown alone: as a slide, or in a frame of another page (`?embed=true`)."""
    return is_presented() or bool(st.context.is_embedded)


def _draw() -> None:
    if not _is_bare():
        st.logo(Path(__file__).with_name("logo.svg"), size="large", icon_image=ICON)
    page, known = navigation()
    if page.name != FIRST_PAGE:  # its visitor may come to measure
        SUPERVISOR_DUE.set()
    st.set_page_config(page_title=f"{page.title} · gpuexplore", page_icon=ICON, layout="wide")
    if not _is_bare():
        show_places(page, known)
        show_account()
        show_role()
        show_recent_runs()
    trouble = note_visit()
    try:
        if trouble is not None:
            redrawn(draw_once_writable, RETRY_S)()
        wait_for_samples()
        body = st.container()
        header = st.container(key="header", horizontal=True, vertical_alignment="center")
        with page_drawn_in_turn(), body:
            draw_tabs = None if _is_bare() else show_header(page, known, header)
            try:
                known[page.name].run()
            finally:
                if draw_tabs:
                    draw_tabs()
    except StoreUnavailable as error:
        if str(error) != str(trouble):
            show_problem(error)
        redrawn(draw_once_back, RETRY_S)(time.monotonic())
    except GpuExploreError as error:  # forged values: a sentence, and no traceback in the log
        show_problem(error)


with PAGE_LIMIT.one():
    _draw()
SUPERVISOR_DUE.set()
