"""The parameters of a link: which each page reads, their longer names, and a word on those that nobody reads."""

from collections.abc import Mapping
from types import MappingProxyType

import streamlit as st

from gpuexplore.request import SHORT_NAMES, short_names
from gpuexplore.ui.markdown import plain

PAGE = "link.page"  # the session's key of the page that is shown
WORKLOAD = ("what", "op", "shape", "layers", "run", "at", "batch", "seq", "hidden", "heads", "ff")
PARAMETERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "benchmark": (*SHORT_NAMES.values(), "run", "with", "baseline", "peak", "explain"),
        "kernels": ("op", "impl", "dtype", "gpu", "block", "shape", "grid", "run", "sweep", "explain"),
        "what-if": (*WORKLOAD, "device", "baseline", "dtype", "gpus", "times", "peaks", "price", "per", "measuring"),
        "roofline": ("device", "dtype", "op", "runs", "recorded", "measuring"),
        "devices": ("q",),
    }
)
MOST_NAMED = 5  # unknown parameters in a message
KNOWN = frozenset(name for names in PARAMETERS.values() for name in names)


def open_page(name: str) -> None:
    """Remember which page is shown, so that each has choices of its own, and name what its link cannot mean.

    Args:
        name: a key of PARAMETERS.
    """
    st.session_state[PAGE] = name
    unknown = [parameter for parameter in parameters() if parameter not in KNOWN]
    if unknown:
        listed = ", ".join(plain(repr(parameter)) for parameter in unknown[:MOST_NAMED])
        accepted = ", ".join(PARAMETERS[name])
        st.warning(f"Unknown in this link: {listed}. This page reads {accepted}.", icon=":material/link:")


def current_page() -> str:
    """Return the page that is shown."""
    return str(st.session_state.get(PAGE, ""))


def parameters() -> dict[str, str]:
    """Return the URL's parameters under their short names."""
    return short_names(st.query_params.to_dict())


def write(name: str, value: str | None) -> None:
    """Set the URL's parameter `name`, or drop it, under whatever name it stands there; leave it where it says so."""
    if parameters().get(name) == value:
        return
    for other in [given for given in st.query_params if SHORT_NAMES.get(given, given) == name]:
        if other != name or value is None:
            del st.query_params[other]
    if value is not None:
        st.query_params[name] = value
