"""A plain Streamlit page as a peer: three charts of 48 points each, of a size that the link names.

    streamlit run benchmarks/peer_charts.py

The figures are made up from the size; nothing is predicted or read.
"""

import altair as alt
import numpy as np
import pandas as pd
import streamlit as st

SERIES, POINTS = 4, 12

size = int(st.query_params.get("size", "1024"))
st.title(f"{size} x {size}")
st.number_input("Size", value=size)
sizes = np.tile(np.geomspace(size / 16, size, POINTS), SERIES)
for title, power in (("Time", 3), ("Rate", 2), ("Speedup", 1)):
    series = np.repeat([f"series {number}" for number in range(SERIES)], POINTS)
    frame = pd.DataFrame({"size": sizes, "value": sizes**power * 1e-9, "series": series})
    lines = alt.Chart(frame, title=title).mark_line(point=True)
    st.altair_chart(
        lines.encode(
            alt.X("size", scale=alt.Scale(type="log")),
            alt.Y("value", scale=alt.Scale(type="log")),
            alt.Color("series"),
            tooltip=["size", "value", "series"],
        )
    )
