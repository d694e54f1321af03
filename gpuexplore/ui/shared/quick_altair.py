"""Altair with less copying: 15 of the 25 ms that a chart of five layers takes are copies of parts that nobody changes.

Altair copies every layer to its last tick whenever layers are put together or derived from each other, asks of every
word whether it might be a chart, and prints the data of each for a name that few need. What is replaced of it is not
public: a test holds the charts of pages to what Altair alone makes of them.
"""

from collections.abc import Container, Iterator
from contextlib import contextmanager
from typing import Any

import altair as alt
from altair.utils import schemapi
from altair.vegalite.v6.schema.channels import FieldChannelMixin, ValueChannelMixin

SET = (alt.TopLevelMixin, alt.MarkDef, alt.FacetedEncoding, FieldChannelMixin, ValueChannelMixin)  # and what they hold
PLAIN = (str, int, float, bool, type(None))
UNNAMED = "view"
_to_dict, _compute_hash = schemapi._todict, alt.Chart._compute_hash


@contextmanager
def quick_altair() -> Iterator[None]:
    """Inside, charts are made with less copying, by all threads: only one may be here at a time."""
    usual = [(owner, name, getattr(owner, name)) for owner, name, _ in REPLACED]
    for owner, name, quick in REPLACED:
        setattr(owner, name, quick)
    try:
        yield
    finally:
        for owner, name, slow in usual:
            setattr(owner, name, slow)


def _copied(found: Any, by_ref: Container[str] = ()) -> Any:
    """Return a copy whose values, layers, marks and channels can be set; axes and scales are the original's."""
    if not isinstance(found, schemapi.SchemaBase):
        return found
    values = {name: value if name in by_ref else _parts(value) for name, value in found._kwds.items()}
    copy = object.__new__(type(found))
    object.__setattr__(copy, "_args", found._args)
    object.__setattr__(copy, "_kwds", values)
    return copy


def _parts(value: Any) -> Any:
    if isinstance(value, SET):
        return _copied(value)
    return [_parts(each) for each in value] if _are_charts(value) else value


def _are_charts(value: Any) -> bool:
    return type(value) is list and bool(value) and isinstance(value[0], alt.TopLevelMixin)


def _as_dict(found: Any, *context: Any, **more: Any) -> Any:
    return found if type(found) in PLAIN else _to_dict(found, *context, **more)


def _view_name(chart: alt.Chart) -> str:
    """Return the name of a layer, to which Altair appends its place: without parameters it is not needed."""
    return UNNAMED if chart._kwds.get("params", alt.Undefined) is alt.Undefined else _compute_hash(chart)


REPLACED = (
    (schemapi, "_deep_copy", _copied),
    (schemapi, "_todict", _as_dict),
    (alt.Chart, "_compute_hash", _view_name),
)
