"""What happens around the pages: the supervisor beside the server, the owner's cookie, the last resort."""

import asyncio
import logging
import os
import secrets
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import streamlit as st
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gpuexplore.jobs.client import watch

LOG = logging.getLogger(__name__)
OWNER_COOKIE = "gpuexplore_owner"
YEAR_S = 365 * 24 * 3600
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


class OwnerCookie:
    """Gives every browser a random name, so that a reload still owns its runs; scripts cannot read it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; add the cookie to the answer to a browser that has none."""
        if scope["type"] != "http" or OWNER_COOKIE in HTTPConnection(scope).cookies:
            await self._app(scope, receive, send)
            return
        fresh = Response()
        secure = scope.get("scheme") == "https"
        fresh.set_cookie(
            OWNER_COOKIE, secrets.token_urlsafe(16), max_age=YEAR_S, httponly=True, samesite="lax", secure=secure
        )

        async def send_with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start" and _is_page(message):
                MutableHeaders(scope=message).append("set-cookie", fresh.headers["set-cookie"])
            await send(message)

        await self._app(scope, receive, send_with_cookie)


def _is_page(message: Message) -> bool:
    """Return whether an answer is a page: a cookie with each of its scripts would name the browser anew."""
    return MutableHeaders(scope=message).get("content-type", "").startswith("text/html")


MIDDLEWARE = (Middleware(OwnerCookie),)


def show_reference(error: Exception) -> bool:
    """Tell the visitor of an unexpected error by a reference that stands in the server's log too."""
    reference = secrets.token_hex(4)
    LOG.error("Error %s", reference, exc_info=error)
    st.error(
        f"Something went wrong on the server. Nothing you measured is lost. Reference **{reference}**: "
        "whoever runs this server finds the cause under it in the log.",
        icon=":material/error:",
    )
    if st.button("Load the page again", type="primary"):
        st.rerun()
    return True
