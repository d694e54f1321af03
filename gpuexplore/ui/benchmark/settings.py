"""The settings of a page and the URL: both ways, with a message for every value that cannot be used.

The URL is the memory: a link restores the settings, and each change is written back. A bad value in a
link is named, the field gets its default, and the rest of the link applies.
"""

from collections.abc import Iterable
from dataclasses import fields, replace

import streamlit as st

from gpuexplore.request import SHORT_NAMES, Request, fields_in, listed, problems_by_field, with_defaults
from gpuexplore.shapes import split
from gpuexplore.ui import link

WRITTEN = "settings.written"  # the fields the URL names, and the request that stands for those it leaves out
LINKED_REQUEST = "settings.meant"  # the request that the URL stands for
PROBLEMS = "settings.problems"
LISTS = ("dtypes", "implementations", "devices")  # fields whose widgets have a list as their value


def restore(fallback: Request, device_ids: Iterable[str]) -> tuple[str, ...]:
    """Fill the widgets' state from the URL when it was changed from outside: a link, or back and forward.

    Returns what could not be used of the link this page was opened with.

    Args:
        fallback: what fields get that the URL does not name.
        device_ids: the devices of this machine.
    """
    given = fields_in(link.parameters())
    if st.session_state.get(WRITTEN) == (given, fallback) and key("operation") in st.session_state:
        return tuple(st.session_state[PROBLEMS])  # another page drops the state of this one's widgets
    known = tuple(device_ids)
    base = Request() if "operation" in given else fallback  # of another operation it would mean something else
    usable, problems = _usable(replace(base, **given), known)
    st.session_state[PROBLEMS] = problems
    st.session_state[WRITTEN] = (given, fallback)
    st.session_state[LINKED_REQUEST] = usable
    for field in fields(Request):
        text = getattr(usable, field.name)
        st.session_state[key(field.name)] = list(split(text)) if field.name in LISTS else text
    return problems


def key(name: str) -> str:
    """Return the session key of the widget of a request's field."""
    return f"settings.{name}"


def current() -> Request:
    """Return the request that the widgets make; where nothing is chosen that has to be, a list of nothing."""
    texts: dict[str, str] = {}
    for field in fields(Request):
        value = st.session_state.get(key(field.name))
        if value is not None:
            texts[field.name] = ",".join(value) if field.name in LISTS else str(value)
    chosen = ("sizes", *LISTS) if not texts.get("shapes") else LISTS
    return Request(**texts | {name: listed(name, texts[name]) for name in chosen if name in texts})


def write(request: Request, device_ids: Iterable[str]) -> None:
    """Write the settings to the URL: the operation and what differs from its defaults; other parameters stay.

    A URL that means them already stays as it is: each change would cost a press of the browser's Back.
    """
    if st.session_state.get(LINKED_REQUEST) == request:
        return
    known = tuple(device_ids)
    _, fallback = st.session_state[WRITTEN]
    given: dict[str, str] = {}
    if request != with_defaults(fallback, known):
        standard = with_defaults(Request(operation=request.operation), known)
        texts = {field.name: getattr(request, field.name).strip() for field in fields(Request)}
        given = {name: text for name, text in texts.items() if name == "operation" or text != getattr(standard, name)}
    st.session_state[WRITTEN] = (given, fallback)
    st.session_state[LINKED_REQUEST] = request
    for name, short in SHORT_NAMES.items():
        link.write(short, given.get(name))


def _usable(request: Request, known: tuple[str, ...]) -> tuple[Request, tuple[str, ...]]:
    """Return `request` complete, with its bad fields at their defaults, and what was wrong with them."""
    problems: dict[str, str] = {}
    for _ in fields(Request):  # a bad operation or device hides what is wrong with the rest
        found = problems_by_field(with_defaults(request, known), known)
        if not found:
            break
        problems |= found
        request = replace(request, **{name: getattr(Request(), name) for name in found})
    return with_defaults(request, known), tuple(dict.fromkeys(problems.values()))
