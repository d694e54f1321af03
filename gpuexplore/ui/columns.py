"""Tables on a page: figures are read with their units and sorted as numbers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from gpuexplore.units import UNKNOWN

Row = Mapping[str, object]


def show_table(
    rows: Sequence[Row],
    words: Mapping[str, Callable[[Any], str]],
    *,
    alt: str,
    config: Mapping[str, Any] | None = None,
    optional: bool = False,
) -> None:
    """Show `rows`, each figure as a number that `words` puts into text, so that a click on a heading sorts by value.

    Args:
        rows: a value for each column; unknown is None, and shown as a dash.
        words: by column, what a reader sees of a number.
        alt: the alternative text.
        config: Streamlit's settings of columns.
        optional: columns in which nothing is known are left out.
    """
    frame = pd.DataFrame(rows).convert_dtypes()
    if optional:
        frame = frame.dropna(axis="columns", how="all")
    shown: dict[Any, Any] = {name: word for name, word in words.items() if name in frame}
    st.dataframe(
        frame.style.format(shown, na_rep=UNKNOWN),
        hide_index=True,
        column_config=dict(config or {}),
        placeholder=UNKNOWN,
        alt=alt,
    )
