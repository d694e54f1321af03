"""Explore, the start page: a picture before a form."""

import streamlit as st

from gpuexplore.features.explore.ui import choose, is_being_measured, show, show_measured
from gpuexplore.ui.benchmark.form import show_offers
from gpuexplore.ui.glossary import page_help
from gpuexplore.ui.link import open_page, parameters
from gpuexplore.ui.navigation import file_of, pages
from gpuexplore.ui.run.state import started
from gpuexplore.ui.session import known_devices
from gpuexplore.ui.shared.later import redrawn

given = parameters()
if "n" not in given and any(name in pages()["benchmark"].parameters for name in given):
    st.switch_page(file_of("benchmark"), query_params=st.query_params.to_dict())  # of the start page of before
if not st.context.is_embedded:
    st.title("Explore", help=page_help("explore"))
open_page("explore")
devices = known_devices()
runs = started()
follows = is_being_measured(devices)
is_live = follows or any(run.active for run in runs)
redrawn(show, 1.0 if is_live else None)(devices, choose(devices), follows=follows)
show_measured(runs, devices)
if not st.context.is_embedded:
    show_offers()
