"""Altair with less copying and checking: 15 of a chart's 25 ms are copies of parts that stay as they are.

Altair copies every layer to its last tick whenever layers are put together or derived from each other, asks of every
word whether it might be a chart, and prints the data of each for a name that few need. What is replaced of it is not
public: a test compares the charts of pages with what Altair alone makes of them, and where a version lacks one of these
names, Altair makes charts alone.
"""

from collections.abc import Container, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from importlib import import_module
from typing import Any

import altair as alt

try:
    schemapi: Any = import_module("altair.utils.schemapi")
    channels: Any = import_module("altair.vegalite.v6.schema.channels")
except ImportError:  # another path in another version: charts are made as Altair makes them
    schemapi = channels = None


@contextmanager
def quick_altair() -> Iterator[None]:
    """Inside, charts are made with less copying, by all threads: only one may be here at a time."""
    usual = [(owner, name, getattr(owner, name)) for owner, name, _ in REPLACED]
    for owner, name, quick in REPLACED:
        setattr(owner, name, quick)
    try:
        with unchecked():
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
    return found if type(found) in (str, int, float, bool, type(None)) else _to_dict(found, *context, **more)


def _view_name(chart: alt.Chart) -> str:
    """Return the name of a layer, to which Altair appends its index: without parameters it is not needed."""
    return "view" if chart._kwds.get("params", alt.Undefined) is alt.Undefined else _compute_hash(chart)


def _all_classes(_: Any) -> Any:
    """Return what finds the class of a part; Altair hashes the schema of each class again for each word like `x:Q`."""
    return _class_finder()


@cache
def _class_finder() -> Any:
    return _from_dict(alt.VegaLiteSchema._default_wrapper_classes())


def unchecked() -> Any:
    """Inside, what charts are made of is not checked against the schema: tests do that."""
    return _debug_mode(False)


def _replaced() -> tuple[tuple[Any, str, Any], ...]:
    """Return what is replaced where and by what: nothing where a name that any of it rests on is missing."""
    asked = ((schemapi, ("SchemaBase", "_deep_copy", "_todict", "_FromDict")), (alt.Chart, ("_compute_hash",)))
    found = all(hasattr(owner, name) for owner, names in asked for name in names)
    if not found or None in SET or not all(hasattr(alt.Chart(), name) for name in ("_args", "_kwds")):
        return ()
    return (
        (schemapi, "_deep_copy", _copied),
        (schemapi, "_todict", _as_dict),
        (schemapi, "_FromDict", _all_classes),
        (alt.Chart, "_compute_hash", _view_name),
    )


SET: tuple[Any, ...] = (  # and what they contain
    *(alt.TopLevelMixin, alt.MarkDef, alt.FacetedEncoding),
    *(getattr(channels, name, None) for name in ("FieldChannelMixin", "ValueChannelMixin")),
)
_debug_mode: Any = getattr(schemapi, "debug_mode", lambda _: nullcontext())
_to_dict: Any = getattr(schemapi, "_todict", None)
_from_dict: Any = getattr(schemapi, "_FromDict", None)
_compute_hash: Any = getattr(alt.Chart, "_compute_hash", None)
REPLACED = _replaced()
