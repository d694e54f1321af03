"""Lessons: guess, measure, see the own figures, learn why, keep one rule."""

import streamlit as st

from gpuexplore.features.lessons.ui.view import show
from gpuexplore.ui.glossary import page_help
from gpuexplore.ui.link import open_page

head = st.container()
open_page("lessons")
show(head, page_help("lessons"))
