"""Names every browser by a cookie that scripts cannot read."""

from http import HTTPStatus

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
        asked = HTTPConnection(scope) if scope["type"] == "http" else None
        if asked is None or is_cookie(asked.cookies.get(OWNER_COOKIE, "")):
            await self._app(scope, receive, send)
            return
        fresh = Response()
        secure = scope.get("scheme") == "https"
        wants_page = "text/html" in asked.headers.get("accept", "")
        fresh.set_cookie(OWNER_COOKIE, new_cookie(), max_age=YEAR_S, httponly=True, samesite="lax", secure=secure)

        async def send_with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start" and _is_page(message, wants_page=wants_page):
                MutableHeaders(scope=message).append("set-cookie", fresh.headers["set-cookie"])
            await send(message)

        await self._app(scope, receive, send_with_cookie)


def _is_page(message: Message, *, wants_page: bool) -> bool:
    """Return whether an answer is a page: a cookie with each of its scripts would name the browser anew.

    A page that the browser has kept, while it forgot the cookie, is "not modified", which states no type.
    """
    if message["status"] == HTTPStatus.NOT_MODIFIED:
        return wants_page
    return MutableHeaders(scope=message).get("content-type", "").startswith("text/html")
