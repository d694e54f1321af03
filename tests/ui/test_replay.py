"""What one visitor drew is sent to the others as it was drawn."""

import pytest
from streamlit.runtime.scriptrunner import StopException
from streamlit.testing.v1 import AppTest

from gpuexplore.ui.run import results
from gpuexplore.ui.shared import Shared


@pytest.fixture(autouse=True)
def parts(monkeypatch):
    monkeypatch.setattr(results, "PARTS", Shared(10))


def page():
    import pyarrow as pa
    import streamlit as st

    from gpuexplore.ui.run.results import _draw_once

    def draw():
        st.session_state.drew = True
        left, right = st.columns(2)
        left.markdown("**words**")
        right.vega_lite_chart({"mark": "point", "datasets": {"a": b""}, "data": {"name": "a"}})
        with st.expander("more"):
            st.dataframe(pa.table({"a": [1, 2]}))

    st.title("a page")
    if st.session_state.get("directly"):
        with st.container():
            draw()
    else:
        _draw_once(st.session_state.get("key", "key"), draw)
    st.caption("below")


def run(**state):
    app = AppTest.from_function(page)
    for name, value in state.items():
        app.session_state[name] = value
    return app.run()


def drawn(app):
    """Return every element with its place."""
    found = []

    def walk(node, place):
        found.append((place, node.type, getattr(node, "proto", None)))
        for number, child in getattr(node, "children", {}).items():
            walk(child, (*place, number))

    walk(app.main, ())
    return [(place, kind, str(proto)) for place, kind, proto in found]


def test_second_visitor_sees_what_streamlit_would_have_drawn():
    first, second, directly = run(), run(), run(directly=True)

    assert "drew" in first.session_state
    assert "drew" not in second.session_state
    assert drawn(first) == drawn(second) == drawn(directly)
    assert len(second.get("vega_lite_chart")) == len(second.dataframe) == 1


def test_another_key_is_drawn():
    run()

    assert "drew" in run(key="another").session_state


def test_what_a_visitor_left_half_drawn_is_drawn_by_the_next(monkeypatch):
    record = results.record

    def leave(draw):
        record(draw)
        raise StopException

    monkeypatch.setattr(results, "record", leave)
    run()
    monkeypatch.setattr(results, "record", record)

    assert "drew" in run().session_state
    assert "drew" not in run().session_state
