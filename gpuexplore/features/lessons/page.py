"""Lessons: guess, measure, see the own figures, learn why, keep one rule."""

import streamlit as st

from gpuexplore.features.lessons.ui.view import show
from gpuexplore.ui.glossary import page_help
from gpuexplore.ui.link import open_page

head = st.container()
open_page("lessons")
if not show(head, page_help("lessons")):
    head.title("Lessons")
    head.caption(
        "Guess first, then measure on this machine: the result, the explanation, and one rule to remember from each "
        "step.",
        help=page_help("lessons"),
    )
