"""Errors: common errors of torch, reproduced here on purpose, with the message, its meaning and the fix."""

from datetime import timedelta

import streamlit as st

from gpuexplore.activity import ActivityRun, of_kind
from gpuexplore.core.notebooks import titles
from gpuexplore.core.serialization import decode
from gpuexplore.features.errors.measure import ERRORS, Provoked
from gpuexplore.ui.activity import show_newest
from gpuexplore.ui.glossary import page_help
from gpuexplore.ui.link import open_page
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.session import known_devices
from gpuexplore.ui.url_widgets import device, select


def _draw(run: ActivityRun) -> None:
    for payload in run.payloads:
        found = decode(Provoked, dict(payload))
        for said in found.said:
            st.code(f"{said['type']}: {said['message']}", language=None, wrap_lines=True)
        if found.reason:
            st.info(f"Not reproduced: {plain(found.reason)}.", icon=":material/info:")
        st.caption(f"torch {plain(found.torch)} on {plain(found.device)}, reproduced on this server.")


st.title("Errors")
st.caption(
    "Common errors and warnings of torch: their meaning, a way out, and the message of the torch installed here.",
    help=page_help("errors"),
)
open_page("errors")
error = ERRORS[select("Error", "error", list(ERRORS), shown=lambda name: ERRORS[name].title)]
chosen = device(known_devices())
st.subheader(error.title, anchor="error")
st.markdown(plain(error.meaning))
provoking, instead = st.columns(2, gap="medium")
with provoking:
    st.markdown(":material/close: **Code that fails**")
    st.code(error.code, language="python", wrap_lines=True)
with instead:
    st.markdown(f":material/check: **Instead.** {plain(error.instead)}")
    st.code(error.instead_code, language="python", wrap_lines=True)
st.caption(f"In the notebooks: {titles(error.rows)}.")
st.markdown("**Message of torch**")
asked = of_kind("provoke", {"name": error.name}, device=chosen.id, expected_s=1.0)
show_newest(asked, timedelta(days=30), _draw, missing="Not reproduced on this server yet.", label="Reproduce")
