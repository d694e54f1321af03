"""Believes a proxy that is named in the settings, and nobody else: addresses, schemes and users can be forged."""

from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit import get_option
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from gpuexplore.ui.environment import trusted_proxies


class TrustedProxies:
    """Takes a visitor's address and scheme from a trusted proxy; from others, drops the user they claim to be."""

    def __init__(self, app: ASGIApp) -> None:
        forwarded: Any = ProxyHeadersMiddleware  # uvicorn and Starlette call the same types by different names
        self._forwarded = forwarded(app, trusted_hosts=list(trusted_proxies()))
        self._only_from_proxies = {name.lower().encode() for name in get_option("server.trustedUserHeaders")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on as what the proxy says it is, or without what only a proxy may say."""
        peer, _ = scope.get("client") or (None, None)
        if scope["type"] != "lifespan" and peer not in self._forwarded.trusted_hosts:
            scope["headers"] = [
                (name, value) for name, value in scope["headers"] if name.lower() not in self._only_from_proxies
            ]
        await self._forwarded(scope, receive, send)
