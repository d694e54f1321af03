"""Names every browser by a cookie that scripts cannot read."""

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gpuexplore.ui.identity import OWNER_COOKIE, is_cookie, new_cookie

YEAR_S = 365 * 24 * 3600


class OwnerCookie:
    """Gives every browser a random name, so that a reload still owns its runs; one we never gave is replaced."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; add the cookie to the page that goes to a browser without a name."""
        if scope["type"] != "http" or is_cookie(HTTPConnection(scope).cookies.get(OWNER_COOKIE, "")):
            await self._app(scope, receive, send)
            return
        fresh = Response()
        secure = scope.get("scheme") == "https"
        fresh.set_cookie(OWNER_COOKIE, new_cookie(), max_age=YEAR_S, httponly=True, samesite="lax", secure=secure)

        async def send_with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start" and _is_page(message):
                MutableHeaders(scope=message).append("set-cookie", fresh.headers["set-cookie"])
            await send(message)

        await self._app(scope, receive, send_with_cookie)


def _is_page(message: Message) -> bool:
    """Return whether an answer is a page: a cookie with each of its scripts would name the browser anew."""
    return MutableHeaders(scope=message).get("content-type", "").startswith("text/html")
