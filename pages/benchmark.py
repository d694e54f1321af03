"""Benchmark: describe an experiment, run it with one click, see what it means."""

from contextlib import suppress

import streamlit as st

from gpuexplore.core.errors import NotFound
from gpuexplore.core.model import Run
from gpuexplore.hardware.discovery import first_dtypes
from gpuexplore.request import Request, with_defaults
from gpuexplore.ui.benchmark import settings
from gpuexplore.ui.benchmark.expected import show_expected
from gpuexplore.ui.benchmark.form import request_form, show_askers, show_offers
from gpuexplore.ui.glossary import page_help
from gpuexplore.ui.link import open_page
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.present import is_presented, show_presentation
from gpuexplore.ui.run.state import fetch, request_of
from gpuexplore.ui.run.view import show_run
from gpuexplore.ui.run_head import show_head
from gpuexplore.ui.session import known_devices

run_id = st.query_params.get("run")
if run_id and is_presented():
    open_page("benchmark")
    with suppress(NotFound):  # shown below
        show_presentation(fetch(run_id))
        st.stop()
head = st.container()
if not run_id:
    head.title("Benchmark")
    head.caption(
        "How fast an operation runs on this machine, how fast it could run, and what limits it.",
        help=page_help("benchmark"),
    )
open_page("benchmark")

devices = known_devices()
ids = [device.id for device in devices]
said = st.container()


def settings_of_run() -> Request:
    """Return the settings the shown run was made with, so that its link restores them."""
    first = Request(dtypes=first_dtypes(devices))
    try:
        return request_of(fetch(run_id), ids) if run_id else first
    except NotFound:
        return first


shown = settings_of_run()
if problems := settings.restore(shown, ids):
    listed = "".join(f"\n- {plain(problem)}" for problem in problems)
    st.warning(f"Some values in this link are invalid; defaults were used:{listed}", icon=":material/link:")
request = request_form(devices, shown, run_id)

if run_id:
    if request != with_defaults(shown, ids):
        st.caption(":material/edit: The settings differ from those of the run below: press **Run** to measure them.")

    def show_above(run: Run) -> None:
        """Draw what stands above the run."""
        show_head(run, head)
        show_askers(run, devices)

    if not show_run(run_id, above=show_above):
        head.title("Benchmark")
else:
    show_expected(request, devices, said)
    show_offers()
