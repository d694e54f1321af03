"""The usual way without gpuexplore: a Streamlit page that measures in its own process, for each of its visitors.

    streamlit run benchmarks/peer_app.py

`?live=1` measures one more point at each tick of a second; `?rows=960` shows that many results.
"""

import time

import numpy as np
import pandas as pd
import streamlit as st

live, rows = "live" in st.query_params, int(st.query_params.get("rows", "12"))
results: list[dict[str, float]] = st.session_state.setdefault("results", [])


def measure() -> None:
    """Time one more product of matrices."""
    size = 64 * (1 + len(results) % 6)
    a = np.random.default_rng(0).random((size, size), np.float32)
    started_s = time.perf_counter()
    a @ a
    results.append({"point": len(results), "size": size, "time_s": time.perf_counter() - started_s})


@st.fragment(run_every=1.0 if live else None)
def draw() -> None:
    """Measure what is missing, then draw everything."""
    for _ in range(1 if live else rows - len(results)):
        measure()
    frame = pd.DataFrame(results)
    frame["flop_per_s"] = 2 * frame["size"] ** 3 / frame["time_s"]
    for figure in ("time_s", "flop_per_s"):
        st.scatter_chart(frame, x="point", y=figure)
    st.dataframe(frame)


st.title("Matrix products")
draw()
