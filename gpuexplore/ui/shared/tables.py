"""Tables on a page: figures are numbers, which sort as such, in one unit a column, and in columns that compare.

They have three significant digits; of a column that reaches 1,000 in its unit, they are rounded before.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import streamlit as st

from gpuexplore.core.units import UNKNOWN, shared_units
from gpuexplore.ui.shared import Shared

Row = Mapping[str, object]
PLAIN = {
    "%": (0.01, " %%"),
    "×": (1.0, "×"),
    "count": (1.0, ""),
    "error": (1.0, ""),
    "GB": (1e9, " GB"),
    "MB": (1e6, " MB"),
    "FLOP/byte": (1.0, " FLOP/byte"),
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
            own = given.get(name, number)
            has_format = (own.get("type_config") or {}).get("format")  # a plain `Column` has no type
            given[name] = own if has_format else own | {"type_config": number["type_config"]}
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
    shown = {name: (1.0, "") for name, values in known.items() if any(isinstance(each, float) for each in values)}
    shown |= {name: PLAIN[unit] for name, unit in units.items() if unit in PLAIN and name in known}
    for unit in set(units.values()) - PLAIN.keys():
        alike = {name: [each for each in known[name] if each] for name in known if units.get(name) == unit}
        shown |= {name: (size, f" {text}") for name, (size, text) in shared_units(alike, unit).items()}
    formats = {}
    for name, (size, text) in shown.items():
        is_whole = all(value is None or isinstance(value, int) for value in known[name]) and size == 1.0
        known[name] = [None if value is None else value / size for value in known[name]]
        largest = max((abs(value) for value in known[name] if value is not None), default=0.0)
        digits = max(3, len(f"{largest:.0f}"))
        if digits > 3 and not is_whole:
            known[name] = [None if value is None else float(f"{value:.3g}") for value in known[name]]
        formats[name] = "%.1e" if units.get(name) == "error" else "localized" if is_whole else f"%.{digits}g{text}"
    return _Table(pa.table(known), formats)
