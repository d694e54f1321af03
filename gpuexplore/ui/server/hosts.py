"""Answers only under the server's own names: a page elsewhere whose name points here must not use it.

That is DNS rebinding: browser, name and origin then agree, so that no check of origins helps. Starlette's
TrustedHostMiddleware does not know the address that a connection reached, and its refusal helps nobody.
"""

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from gpuexplore.jobs.server_settings import ALLOWED_HOSTS
from gpuexplore.ui.environment import ANY_HOST, allowed_hosts

REFUSAL = (
    "This server does not answer under the name in the address. Use one of: {names}. "
    f"Whoever runs it can add names in {ALLOWED_HOSTS}.\n"
)


class AllowedHosts:
    """Refuses requests and websockets for names that are not this server's."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._names = allowed_hosts()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on where its Host is allowed, else answer with the names that are."""
        if scope["type"] == "lifespan" or self._allows(scope):
            await self._app(scope, receive, send)
        else:
            refusal = PlainTextResponse(REFUSAL.format(names=", ".join(self._names)), status_code=400)
            await refusal(scope, receive, send)

    def _allows(self, scope: Scope) -> bool:
        name = _hostname(Headers(scope=scope).get("host", ""))
        reached, _ = scope.get("server") or (None, None)
        return name is not None and (name == reached or any(_matches(name, allowed) for allowed in self._names))


def _hostname(host: str) -> str | None:
    """Return the name in a Host header, without its port; None where there is none."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:  # brackets without an address
        return None


def _matches(name: str, allowed: str) -> bool:
    return allowed in (name, ANY_HOST) or (allowed.startswith("*.") and name.endswith(allowed[1:]))
