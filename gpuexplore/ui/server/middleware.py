"""Layers between the web server and Streamlit: whom it believes and answers, what it takes, and what it adds.

Each function takes an ASGI app and returns one that passes on what it lets through.
"""

import re
import socket
from collections.abc import Callable
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import get_option
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from gpuexplore.jobs.server_settings import ALLOWED_HOSTS, ANY, FRAMED_BY, TRUSTED_PROXIES, listed
from gpuexplore.ui.identity import OWNER_COOKIE, is_cookie, new_cookie
from gpuexplore.ui.undocumented import is_client_message, keeps_upload, was_set

# Streamlit takes a page's icon for the browser's tab from fonts.gstatic.com: nothing shall leak to others.
OWN_PICTURES = "img-src 'self' data: blob:; font-src 'self' data:"
# Set by Hugging Face: the name that a Space has, whose page shows it in a frame
# (https://huggingface.co/docs/hub/spaces-overview#helper-environment-variables)
SPACE_HOST = "SPACE_HOST"
DEFAULT_PORTS = {"http": 80, "https": 443}
FOREIGN_PAGE = (
    "This server accepts requests from its own pages only, but this one comes from {origin}. Behind a proxy: forward "
    "the header Host, or start the app with --behind-proxy and the proxy's name.\n"
)
UPLOAD = re.compile(r"/_stcore/upload_file/([^/]{1,100})/([^/]{1,100})$")
MAX_UPLOAD_BYTES_OF_PAGE = 20_000_000
MAX_UPLOAD_BYTES = 150_000_000  # of all pages
TOO_MUCH = "Uploads are limited to 20 MB per page and 150 MB in total: remove one first, or try again later.\n"
INVALID_FRAME = 1007  # RFC 6455, 7.4.1


def trust_proxies(app: ASGIApp) -> ASGIApp:
    """Take a visitor's address and scheme from a proxy that the settings name; else drop the user that it names.

    Addresses, schemes and users can be forged by all others.
    """
    make: Any = ProxyHeadersMiddleware  # uvicorn and Starlette call the same types by different names
    forwarded = make(app, trusted_hosts=list(listed(TRUSTED_PROXIES)))
    only_from_proxies = {name.lower().encode() for name in get_option("server.trustedUserHeaders")}

    async def trusting(scope: Scope, receive: Receive, send: Send) -> None:
        peer, _ = scope.get("client") or (None, None)
        if scope["type"] != "lifespan" and peer not in forwarded.trusted_hosts:
            scope["headers"] = [
                (name, value) for name, value in scope["headers"] if name.lower() not in only_from_proxies
            ]
        await forwarded(scope, receive, send)

    return trusting


def add_headers(app: ASGIApp) -> ASGIApp:
    """Add the headers that every answer carries, and answer for Streamlit's metrics that there are none."""
    headers = {
        "x-content-type-options": "nosniff",
        "referrer-policy": "same-origin",  # a link names a run, and shows it
        **_frame_headers(),
    }

    async def adding(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"].endswith("http.response.start"):  # of a refused websocket too
                MutableHeaders(scope=message).update(headers)
            await send(message)

        # Streamlit's metrics show sessions and their memory
        hidden = scope["type"] == "http" and scope["path"].rstrip("/").endswith("/_stcore/metrics")
        answering = PlainTextResponse("Not found\n", status_code=404) if hidden else app
        await answering(scope, receive, send_with_headers)

    return adding


def _frame_headers() -> dict[str, str]:
    """Return the headers about pages that show this one in a frame: its own, for Streamlit's components.

    The same header says that pictures and fonts come from this server only.

    Where others may as well, x-frame-options is left out: it can name no other (RFC 7034, 2.1).
    """
    others = [*listed(FRAMED_BY)]
    if listed(SPACE_HOST):
        others.append("https://huggingface.co")
    framed = " ".join(("frame-ancestors 'self'", *others))
    policy = {"content-security-policy": f"{framed}; {OWN_PICTURES}"}
    return policy if others else {**policy, "x-frame-options": "SAMEORIGIN"}


def refuse_foreign_names(app: ASGIApp) -> ASGIApp:
    """Answer only under the server's own names: a page elsewhere whose name points here must not use it.

    That is DNS rebinding: browser, name and origin then agree, so that no check of origins helps. Starlette's
    TrustedHostMiddleware does not know the address that a connection reached, and its refusal explains nothing.
    """
    own = (
        "localhost",
        "127.0.0.1",
        "::1",
        socket.gethostname(),
        get_option("server.address"),
        get_option("browser.serverAddress"),
    )
    given = (*(listed(ALLOWED_HOSTS) or own), *listed(SPACE_HOST))
    names = tuple(dict.fromkeys(name.casefold() for name in given if name))
    reason = (
        f"This server does not accept requests for the name in the address. Use one of: {', '.join(names)}. "
        f"The administrator can add names in {ALLOWED_HOSTS}.\n"
    )

    async def answering(scope: Scope, receive: Receive, send: Send) -> None:
        is_own = scope["type"] == "lifespan" or _is_own_name(scope, names)
        await (app if is_own else PlainTextResponse(reason, status_code=400))(scope, receive, send)

    return answering


def _is_own_name(scope: Scope, names: tuple[str, ...]) -> bool:
    try:
        name = urlsplit(f"//{Headers(scope=scope).get('host', '')}").hostname
    except ValueError:  # brackets without an address
        return False
    reached, _ = scope.get("server") or (None, None)
    if name is None:
        return False
    if name == reached or name in names or ANY in names:
        return True
    return any(allowed.startswith("*.") and name.endswith(allowed[1:]) for allowed in names)


def refuse_foreign_pages(app: ASGIApp) -> ASGIApp:
    """Refuse websockets, and requests that change something, of pages of another server or another port.

    Streamlit takes every page of the same host for its own, whatever its port, and looks the machine's external address
    up before it refuses another one: where packets to the outside are dropped, that stops all requests for seconds.
    """
    is_own = _own_origins()

    async def answering(scope: Scope, receive: Receive, send: Send) -> None:
        # What these three answer no page of another origin can read
        acts = scope["type"] == "http" and scope["method"] not in ("GET", "HEAD", "OPTIONS")
        origin = Headers(scope=scope).get("origin") if acts or scope["type"] == "websocket" else None
        if origin is None or is_own(origin, Headers(scope=scope).get("host", "")):  # without one, no browser sent it
            await app(scope, receive, send)
        else:
            refusal = PlainTextResponse(FOREIGN_PAGE.format(origin=origin[:100]), status_code=403)
            await refusal(scope, receive, send)

    return answering


def _own_origins() -> Callable[[str, str], bool]:
    """Return what says whether an origin is that of a page of this server, which was reached as a host."""
    address = "browser.serverAddress"  # what a proxy is called that forwards under another name than its own
    proxy = str(get_option(address)) if was_set(address, default="localhost") else None
    others = {str(origin).strip().casefold() for origin in get_option("server.corsAllowedOrigins")}

    def is_own(origin: str, host: str) -> bool:
        try:
            parts = urlsplit(origin.casefold())
            name = parts.hostname
            usual = parts.port in (None, DEFAULT_PORTS.get(parts.scheme))
        except ValueError:  # brackets without an address, a port that is no number
            return False
        if name is None:
            return False
        reached = host.casefold()
        if parts.netloc == reached or (usual and name == re.sub(":(80|443)$", "", reached)):
            return True
        return (usual and name == proxy) or origin.casefold() in others

    return is_own


def bound_uploads(app: ASGIApp) -> ASGIApp:
    """Refuse an upload with which a page, or all of them, would keep too much in memory.

    Streamlit keeps each in memory, bounds its size, and not how many a page sends.
    """
    kept: dict[tuple[str, str], int] = {}  # bytes by page and file, of those that arrive too
    arriving = set[tuple[str, str]]()

    def has_capacity(name: tuple[str, str], more: int) -> bool:
        for other in list(kept):
            if other not in arriving and not keeps_upload(*other):
                del kept[other]
        others = [(page, length) for (page, file), length in kept.items() if (page, file) != name]
        of_page = sum(length for page, length in others if page == name[0])
        return (
            of_page + more <= MAX_UPLOAD_BYTES_OF_PAGE
            and sum(length for _, length in others) + more <= MAX_UPLOAD_BYTES
        )

    async def taking(scope: Scope, receive: Receive, send: Send) -> None:
        upload = UPLOAD.search(scope["path"]) if scope["type"] == "http" and scope["method"] == "PUT" else None
        if upload is None:
            await app(scope, receive, send)
            return
        name = (upload[1], upload[2])
        length = Headers(scope=scope).get("content-length", "")
        if not length.isdecimal():
            await PlainTextResponse(
                "An upload needs a Content-Length header with its bytes.\n", HTTPStatus.LENGTH_REQUIRED
            )(scope, receive, send)
        elif name in arriving or not has_capacity(name, int(length[:20])):
            await PlainTextResponse(TOO_MUCH, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)(scope, receive, send)
        else:
            kept[name] = int(length[:20])
            arriving.add(name)
            try:
                await app(scope, receive, send)
            finally:
                arriving.discard(name)

    return taking


def check_frames(app: ASGIApp) -> ASGIApp:
    """End a websocket at its first frame that no browser of ours sends, with a sentence instead of a traceback."""

    async def checking(scope: Scope, receive: Receive, send: Send) -> None:
        refused = False  # then the websocket is over for the app

        async def receive_readable() -> Message:
            nonlocal refused
            message = await receive()
            frame = message.get("bytes")
            if message["type"] != "websocket.receive" or (frame is not None and is_client_message(frame)):
                return message
            refused = True
            await send(
                {
                    "type": "websocket.close",
                    "code": INVALID_FRAME,
                    "reason": "Expected binary frames, each one message of Streamlit's browser client.",
                }
            )
            return {"type": "websocket.disconnect", "code": INVALID_FRAME}

        async def send_unless_refused(message: Message) -> None:
            if not refused:
                await send(message)

        if scope["type"] == "websocket":
            await app(scope, receive_readable, send_unless_refused)
        else:
            await app(scope, receive, send)

    return checking


def name_browsers(app: ASGIApp) -> ASGIApp:
    """Give every browser a random name in a cookie that scripts cannot read; one we never gave is replaced.

    So a reload still owns its runs. The cookie goes with a page, to a browser without a name.
    """

    async def naming(scope: Scope, receive: Receive, send: Send) -> None:
        asked = HTTPConnection(scope) if scope["type"] == "http" else None
        if asked is None or is_cookie(asked.cookies.get(OWNER_COOKIE, "")):
            await app(scope, receive, send)
            return
        fresh = Response()
        secure = scope.get("scheme") == "https"
        wants_page = "text/html" in asked.headers.get("accept", "")
        fresh.set_cookie(
            OWNER_COOKIE, new_cookie(), max_age=365 * 24 * 3600, httponly=True, samesite="lax", secure=secure
        )

        async def send_with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start" and _is_page(message, wants_page=wants_page):
                MutableHeaders(scope=message).append("set-cookie", fresh.headers["set-cookie"])
            await send(message)

        await app(scope, receive, send_with_cookie)

    return naming


def _is_page(message: Message, *, wants_page: bool) -> bool:
    """Return whether an answer is a page: a cookie with each of its scripts would name the browser anew.

    A page that the browser has kept, while it forgot the cookie, is "not modified", which states no type.
    """
    if message["status"] == HTTPStatus.NOT_MODIFIED:
        return wants_page
    return MutableHeaders(scope=message).get("content-type", "").startswith("text/html")
