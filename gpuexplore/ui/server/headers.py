"""Headers that every answer carries, and the endpoint of Streamlit that is nobody's business."""

from starlette.datastructures import MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gpuexplore.ui.environment import framed_by

HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # a link names a run, and whoever has it sees the run
}
# Streamlit takes a page's icon for the browser's tab from fonts.gstatic.com: nobody shall learn who looks at what.
OWN_PICTURES = "img-src 'self' data: blob:; font-src 'self' data:"
METRICS = "/_stcore/metrics"  # sessions and their memory


class SafeHeaders:
    """Adds the headers, and answers for the metrics that there are none."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._headers = {**HEADERS, **frame_headers()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and add the headers to its answer."""

        async def send_with_headers(message: Message) -> None:
            if message["type"].endswith("http.response.start"):  # of a refused websocket too
                MutableHeaders(scope=message).update(self._headers)
            await send(message)

        hidden = scope["type"] == "http" and scope["path"].rstrip("/").endswith(METRICS)
        app = PlainTextResponse("Not found\n", status_code=404) if hidden else self._app
        await app(scope, receive, send_with_headers)


def frame_headers() -> dict[str, str]:
    """Return what browsers are told about pages that show this one in a frame: its own, for Streamlit's components.

    The same header says that pictures and fonts come from this server only.

    Where others may as well, x-frame-options is left out: it can name no other (RFC 7034, 2.1).
    """
    others = framed_by()
    framed = " ".join(("frame-ancestors 'self'", *others))
    policy = {"content-security-policy": f"{framed}; {OWN_PICTURES}"}
    return policy if others else {**policy, "x-frame-options": "SAMEORIGIN"}
