"""Rooms: a class that is together, by a code and without accounts."""

import streamlit as st

from gpuexplore.features.workshop.ui.view import show
from gpuexplore.ui.glossary import page_help
from gpuexplore.ui.link import open_page
from gpuexplore.ui.present import is_presented

if not is_presented():
    st.title("Rooms")
    st.caption(
        "Tasks for a class that joins by a code, without accounts: guesses, runs and lessons, results on a wall.",
        help=page_help("rooms"),
    )
open_page("rooms")
show()
