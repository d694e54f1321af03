"""Answers a page's websocket and what it sends only where the page is this server's own.

Streamlit takes every page of the same host for its own, whatever its port, and looks the machine's external address up
before it refuses another one: where packets to the outside are dropped, that stops everybody for seconds.
"""

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit import get_option

from gpuexplore.ui.undocumented import was_set

SERVER_ADDRESS = "browser.serverAddress"  # what a proxy is called that forwards under another name than its own
DEFAULT_PORTS = {"http": 80, "https": 443}
READING = ("GET", "HEAD", "OPTIONS")  # what these answer no page of another origin can read
REFUSAL = (
    "This server answers its own pages only, and this one comes from {origin}. Behind a proxy: let it forward the "
    "header Host, or start the app with --behind-proxy and the proxy's name.\n"
)


class OwnOrigins:
    """Refuses websockets, and requests that change something, of pages of another server or another port."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._proxy = str(get_option(SERVER_ADDRESS)) if was_set(SERVER_ADDRESS, default="localhost") else None
        self._others = {str(origin).strip().casefold() for origin in get_option("server.corsAllowedOrigins")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on where its Origin is this server's, or where there is none: then no browser sent it."""
        origin = Headers(scope=scope).get("origin") if _acts(scope) else None
        if origin is None or self._is_own(origin, Headers(scope=scope).get("host", "")):
            await self._app(scope, receive, send)
        else:
            refusal = PlainTextResponse(REFUSAL.format(origin=origin[:100]), status_code=403)
            await refusal(scope, receive, send)

    def _is_own(self, origin: str, host: str) -> bool:
        try:
            parts = urlsplit(origin.casefold())
            name, port = parts.hostname, parts.port
        except ValueError:  # brackets without an address, a port that is no number
            return False
        usual = port in (None, DEFAULT_PORTS.get(parts.scheme))
        if name is None:
            return False
        if parts.netloc == host.casefold() or (usual and name == _without_usual_port(host.casefold())):
            return True
        return (usual and name == self._proxy) or origin.casefold() in self._others


def _acts(scope: Scope) -> bool:
    return scope["type"] == "websocket" or (scope["type"] == "http" and scope["method"] not in READING)


def _without_usual_port(host: str) -> str:
    for port in DEFAULT_PORTS.values():
        host = host.removesuffix(f":{port}")
    return host
