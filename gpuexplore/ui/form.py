"""The form that describes an experiment: widgets in, a `Request` out; judged by `gpuexplore.request`."""

from collections.abc import Sequence

import streamlit as st

from gpuexplore.model import CACHE_MODES, DATA_MODES, Device
from gpuexplore.operations import OPERATIONS
from gpuexplore.request import Request, with_defaults
from gpuexplore.ui import settings
from gpuexplore.ui.settings import key

SIZES_HELP = "A list like `64, 128, 256`, or a range: `256:8192:x2` doubles, `100:500:+100` adds."
BUDGET_HELP = "Seconds of sampling for each point. Sampling stops sooner once the median is known within 1 %."


def experiment_form(devices: Sequence[Device]) -> Request:
    """Draw the form and return what it holds.

    Args:
        devices: what this machine can measure on.
    """
    ids = [device.id for device in devices]
    with st.container(border=True):
        left, right = st.columns([2, 3], gap="medium")
        with left:
            st.selectbox(
                "Operation", list(OPERATIONS), key=key("operation"), format_func=_title, on_change=_renew, args=(ids,)
            )
        with right:
            _sizes()
        operation = OPERATIONS[st.session_state[key("operation")]]
        st.caption(f"{operation.formula}. {operation.about}")
        dtypes, implementations, places = st.columns([5, 6, 3], gap="medium")
        with dtypes:
            _pills("Dtypes", "dtypes", operation.dtypes)
        with implementations:
            _pills("Implementations", "implementations", [one.name for one in operation.implementations])
        with places:
            _pills("Devices", "devices", ids)
        with st.expander("Conditions: cache, data, threads, budget, exact shapes", icon=":material/tune:"):
            _conditions(devices)
    return settings.current()


def _title(name: str) -> str:
    return OPERATIONS[name].title


def _renew(ids: Sequence[str]) -> None:
    """Give a newly chosen operation its own sizes and implementations; other settings stay."""
    held = settings.current()
    own = with_defaults(Request(operation=held.operation, devices=held.devices), ids)
    st.session_state[key("sizes")] = own.sizes
    st.session_state[key("shapes")] = ""
    st.session_state[key("implementations")] = own.implementations.split(",")
    known = OPERATIONS[held.operation].dtypes
    st.session_state[key("dtypes")] = [one for one in held.dtypes.split(",") if one in known]


def _sizes() -> None:
    if st.session_state.get(key("shapes")):
        st.text_input("Sizes", value="", disabled=True, placeholder="exact shapes are set under Conditions")
    else:
        st.text_input("Sizes", key=key("sizes"), help=SIZES_HELP)


def _pills(label: str, name: str, options: Sequence[str]) -> None:
    """Draw a choice of several; what is chosen but no longer offered is dropped."""
    chosen = [one for one in st.session_state.get(key(name), []) if one in options]
    st.session_state[key(name)] = chosen
    st.pills(label, options, selection_mode="multi", key=key(name))


def _conditions(devices: Sequence[Device]) -> None:
    cores = next((device.cores for device in devices if device.cores), None)
    cache, data, threads, budget = st.columns(4)
    with cache:
        _one_of(
            "Cache",
            "cache",
            ["", *CACHE_MODES],
            help="`cold` empties the last-level cache before each call; `both` adds the other state.",
        )
    with data:
        _one_of("Data", "data", list(DATA_MODES), help="Zeros draw less power: a GPU then runs up to 15 % too fast.")
    with threads:
        st.text_input("Threads", key=key("threads"), placeholder=f"{cores or 'one'} per core", help="CPU threads.")
    with budget:
        st.text_input("Budget (s)", key=key("budget"), help=BUDGET_HELP)
    st.text_input(
        "Exact shapes instead of sizes",
        key=key("shapes"),
        placeholder="m=512,k=64,n=512; m=2048,k=64,n=64",
        help="Several shapes are separated by semicolons.",
    )


def _one_of(label: str, name: str, options: Sequence[str], *, help: str) -> None:
    st.selectbox(label, options, key=key(name), format_func=lambda one: one or "device's default", help=help)
