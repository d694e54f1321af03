"""Tables on a page: figures are numbers, which sort as such, in one unit a column, and in columns that compare."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import streamlit as st

from gpuexplore.core.units import UNKNOWN, shared_units
from gpuexplore.ui.shared import Shared

Row = Mapping[str, object]
PLAIN = {
    "%": (0.01, "%.3g %%"),
    "×": (1.0, "%.3g×"),
    "count": (1.0, "localized"),
    "error": (1.0, "%.1e"),
    "GB": (1e9, "%.4g GB"),
    "MB": (1e6, "%.4g MB"),
    "FLOP/byte": (1.0, "%.3g FLOP/byte"),
}


@dataclass(frozen=True, slots=True)
class _Table:
    """A table as Streamlit sends it; figures are in the units that `formats` print, by column."""

    data: pa.Table
    formats: Mapping[str, str]

    def show(self, *, alt: str, config: Mapping[str, Any] | None = None) -> None:
        """Draw it.

        Args:
            alt: the alternative text.
            config: Streamlit's settings of columns.
        """
        given = dict(config or {})
        for name, form in self.formats.items():
            number = st.column_config.NumberColumn(format=form)
            given[name] = given.get(name, number) | {"type_config": number["type_config"]}
        st.dataframe(self.data, hide_index=True, column_config=given, placeholder=UNKNOWN, alt=alt)


TABLES: Shared[_Table] = Shared(300)


def show_table(
    rows: Callable[[], Sequence[Row]],
    of: Hashable,
    units: Mapping[str, str],
    *,
    alt: str,
    config: Mapping[str, Any] | None = None,
) -> None:
    """Show a table, made once for all who look at the same thing.

    Args:
        rows: makes the rows.
        of: everything that decides what is in them.
        units: as of `table_of`.
        alt: the alternative text.
        config: Streamlit's settings of columns.
    """
    TABLES.get((alt, of), lambda: table_of(rows(), units)).show(alt=alt, config=config)


def table_of(rows: Sequence[Row], units: Mapping[str, str]) -> _Table:
    """Return `rows` as a table, without the columns in which nothing is known.

    Args:
        rows: a value for each column; unknown is None, and shown as a dash.
        units: of columns of numbers: one that `shared_units` knows, or a key of PLAIN.
    """
    names = dict.fromkeys(name for row in rows for name in row)
    columns: dict[str, list[Any]] = {name: [row.get(name) for row in rows] for name in names}
    known = {name: values for name, values in columns.items() if any(value is not None for value in values)}
    shown = {name: PLAIN[unit] for name, unit in units.items() if unit in PLAIN and name in known}
    for unit in set(units.values()) - PLAIN.keys():
        alike = {name: [each for each in known[name] if each] for name in known if units.get(name) == unit}
        for name, (size, text) in shared_units(alike, unit).items():
            largest = max((abs(value) / size for value in alike[name]), default=1.0)
            digits = max(4, len(str(int(largest))))  # or as many as it has before the point
            shown[name] = (size, f"%.{digits}g {text}")
    for name, (size, _) in shown.items():
        known[name] = [None if value is None else value / size for value in known[name]]
    return _Table(pa.table(known), {name: form for name, (_, form) in shown.items()})
