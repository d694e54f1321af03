"""What plain Streamlit makes of the same: a page with a table of runs, and a page with a run's chart and table.

    streamlit run benchmarks/peer_pages.py

The figures are made up; nothing is read from a database.
"""

import altair as alt
import numpy as np
import pandas as pd
import streamlit as st

ROWS, POINTS = 50, 36


def start() -> None:
    """Draw a page that has neither."""
    st.title("Start")


def runs() -> None:
    """Draw a table whose rows are ticked and renamed."""
    st.title("Runs")
    st.data_editor(
        pd.DataFrame(
            {
                "Tick": [False] * ROWS,
                "Title": [f"matmul 64 to 384, fp32 {row}" for row in range(ROWS)],
                **{name: [name] * ROWS for name in ("Operation", "Device", "When", "Rate", "Quality", "Owner")},
            }
        ),
        hide_index=True,
    )


def run() -> None:
    """Draw a chart of a run and its results."""
    st.title("A run")
    sizes = np.tile([64, 128, 256, 384], POINTS // 4)
    frame = pd.DataFrame({"size": sizes, "time_s": 1e-9 * sizes**2, "series": np.repeat(range(POINTS // 4), 4)})
    lines = alt.Chart(frame, height=400).mark_line(point=True)
    st.altair_chart(lines.encode(x="size:Q", y="time_s:Q", color="series:N"))
    st.dataframe(frame)


st.navigation([st.Page(start, title="Start"), st.Page(runs, title="Runs"), st.Page(run, title="A run")]).run()
