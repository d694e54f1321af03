"""Choices that the URL remembers: a link restores them, and a value it cannot use is named with the accepted ones."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

import streamlit as st

from gpuexplore.errors import GpuExploreError, InvalidInput
from gpuexplore.request import split
from gpuexplore.ui.markdown import plain

LONGEST_LIST = 40  # of accepted names in a message
MOST_PROBLEMS = 5  # of one control


def select(
    label: str,
    name: str,
    options: Sequence[str],
    *,
    shown: Callable[[str], str] = str,
    problems: AbstractContextManager[object] | None = None,
) -> str:
    """Draw a select box whose value is the URL's parameter `name`; the first option is its default.

    A value that is no option any more, because another choice changed them, gives way to the default.

    Args:
        shown: what a reader sees of an option.
        problems: the container that names a bad value; None names it above the box.
    """
    with problems or nullcontext():
        _restore(name, options[0], accepted=options)
    if st.session_state[_key(name)] not in options:
        st.session_state[_key(name)] = options[0]
    chosen: str = st.selectbox(label, options, key=_key(name), format_func=shown)
    _remember(name, chosen, default=options[0])
    return chosen


def segments(label: str, name: str, options: Sequence[str], *, shown: Callable[[str], str] = str) -> str:
    """Draw a row of buttons whose value is the URL's parameter `name`; the first option is its default."""
    _restore(name, options[0], accepted=options)
    chosen: str = st.segmented_control(label, options, key=_key(name), format_func=shown, required=True) or options[0]
    _remember(name, chosen, default=options[0])
    return chosen


def several(
    label: str, name: str, options: Sequence[str], *, default: Sequence[str], shown: Callable[[str], str] = str
) -> list[str]:
    """Draw a choice of several whose value is the URL's parameter `name`, separated by commas."""
    usual = ",".join(default)
    given = st.query_params.get(name)
    if _key(name) not in st.session_state or st.session_state.get(_seen(name)) != given:
        st.session_state[_seen(name)] = given
        words = split(usual if given is None else given)
        unknown = [one for one in words if one not in options]
        for word in unknown[:MOST_PROBLEMS]:
            show_problem(InvalidInput.of(name, word, _listed(options)))
        if len(unknown) > MOST_PROBLEMS:
            show_problem(InvalidInput(f"{name}: {len(unknown) - MOST_PROBLEMS} more cannot be used"))
        st.session_state[_key(name)] = [one for one in words if one in options]
    chosen: list[str] = st.multiselect(label, options, key=_key(name), format_func=shown)
    _remember(name, ",".join(chosen), default=usual)
    return chosen


def text(label: str, name: str, default: str, *, help: str, placeholder: str = "") -> str:
    """Draw a text field whose value is the URL's parameter `name`."""
    _restore(name, default)
    typed: str = st.text_input(label, key=_key(name), help=help, placeholder=placeholder)
    _remember(name, typed, default=default)
    return typed


def lines(label: str, name: str, default: str, *, help: str) -> str:
    """Draw a field of several lines whose value is the URL's parameter `name`, where ``;`` separates them."""
    _restore(name, default)
    typed: str = st.text_area(label, key=_key(name), help=help) or ""
    _remember(name, typed, default=default)
    return typed


def forget(*names: str) -> None:
    """Give the choices `names` their defaults again: what they meant is no longer there."""
    for name in names:
        st.query_params.pop(name, None)
        st.session_state.pop(_key(name), None)


def show_problem(error: GpuExploreError) -> None:
    """Show what cannot be used, and what would be accepted."""
    for line in str(error).splitlines():
        st.error(plain(line), icon=":material/error:")


def _listed(accepted: Sequence[str]) -> Sequence[str]:
    named = [one for one in accepted if one]  # an empty one is the default, which no link names
    return named if len(named) < LONGEST_LIST else ("the names in the list below",)


def _key(name: str) -> str:
    return f"choice.{name}"


def _seen(name: str) -> str:
    return f"choice.{name}.seen"


def _restore(name: str, default: str, accepted: Sequence[str] | None = None) -> None:
    """Take the URL's value when it was changed from outside: a link, or back and forward."""
    given = st.query_params.get(name)
    if _key(name) in st.session_state and st.session_state.get(_seen(name)) == given:
        return
    st.session_state[_seen(name)] = given
    if given is not None and accepted is not None and given not in accepted:
        show_problem(InvalidInput.of(name, given, _listed(accepted)))
        given = None
    st.session_state[_key(name)] = default if given is None else given


def _remember(name: str, value: str, *, default: str) -> None:
    wanted = None if value == default else value
    if st.query_params.get(name) == wanted:
        return
    st.session_state[_seen(name)] = wanted
    if wanted is None:
        st.query_params.pop(name, None)
    else:
        st.query_params[name] = wanted
