"""What starts and ends with the web server: the watch over the supervisor beside it."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import streamlit as st

from gpuexplore.jobs.client import watch

NICE = 5


@asynccontextmanager
async def lifespan(_: st.App) -> AsyncIterator[None]:
    """Keep a supervisor alive while the server runs, and end the one that was started with it."""
    stop = threading.Event()
    watching = threading.Thread(target=watch, args=(stop,), name="supervisor-watch")
    watching.start()
    _step_back()
    try:
        yield
    finally:
        stop.set()
        await asyncio.to_thread(watching.join)


def _step_back() -> None:
    """Let measuring go first where both want a core: a page may wait, a measurement may not."""
    if hasattr(os, "nice"):
        os.nice(NICE)
