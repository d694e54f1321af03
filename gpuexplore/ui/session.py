"""Who is asking, and the services every page uses."""

import secrets
from functools import cache

import streamlit as st

from gpuexplore.devices import discover
from gpuexplore.model import Bandwidth, Device, Peak
from gpuexplore.store import Store, Supervisor, open_store
from gpuexplore.ui.server import OWNER_COOKIE


@cache  # not st.cache_resource: any visitor can clear that
def store() -> Store:
    """Return this process's connection to the store."""
    return open_store()


def owner() -> str:
    """Return the name of this browser; one that refuses cookies is known for this session only."""
    if named := st.context.cookies.get(OWNER_COOKIE):
        return named
    if "owner" not in st.session_state:
        st.session_state.owner = secrets.token_urlsafe(16)
    return str(st.session_state.owner)


def live_supervisor() -> Supervisor | None:
    """Return the process that measures, or None when it was not heard of in the last seconds."""
    found = store().supervisor()
    return found if found is not None and found.alive else None


def known_devices() -> tuple[Device, ...]:
    """Return this machine's devices: as the measuring process sees them, else as far as a look tells."""
    measuring = live_supervisor()
    return measuring.devices if measuring and measuring.devices else discover()


def own_peaks(device: Device) -> tuple[Peak, ...]:
    """Return the peaks this browser's owner entered for a device."""
    return store().own_peaks(owner(), device)


def own_bandwidth(device: Device) -> Bandwidth | None:
    """Return the memory bandwidth this browser's owner entered for a device."""
    return store().own_bandwidth(owner(), device)
