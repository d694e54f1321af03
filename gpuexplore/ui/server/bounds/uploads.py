"""Bounded uploads: Streamlit keeps each in memory, bounds its size, and not how many a page sends."""

import re
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from gpuexplore.ui.undocumented import keeps_upload

UPLOAD = re.compile(r"/_stcore/upload_file/([^/]{1,100})/([^/]{1,100})$")
MOST_BYTES, MOST_BYTES_IN_ALL = 20_000_000, 150_000_000  # of one page, of all
TOO_MUCH = "Uploads of one page may hold 20 MB, of all pages 150 MB: remove one first, or try again later.\n"
NO_LENGTH = "An upload needs a Content-Length header with its bytes.\n"


class BoundedUploads:
    """Refuses an upload beside which a page, or all of them, would hold too much."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._bytes: dict[tuple[str, str], int] = {}  # by page and file, those that arrive included
        self._arriving = set[tuple[str, str]]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer why its file is not taken."""
        upload = UPLOAD.search(scope["path"]) if scope["type"] == "http" and scope["method"] == "PUT" else None
        if upload is None:
            await self._app(scope, receive, send)
            return
        name, length = (upload[1], upload[2]), Headers(scope=scope).get("content-length", "")
        if not length.isdecimal():
            await PlainTextResponse(NO_LENGTH, HTTPStatus.LENGTH_REQUIRED)(scope, receive, send)
        elif name in self._arriving or not self._has_room(name, int(length[:20])):
            await PlainTextResponse(TOO_MUCH, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)(scope, receive, send)
        else:
            self._bytes[name] = int(length[:20])
            self._arriving.add(name)
            try:
                await self._app(scope, receive, send)
            finally:
                self._arriving.discard(name)

    def _has_room(self, name: tuple[str, str], more: int) -> bool:
        """Return whether so many more bytes may be kept, beside those that still are."""
        kept = {
            other: length for other, length in self._bytes.items() if other in self._arriving or keeps_upload(*other)
        }
        self._bytes = kept
        others = [(page, length) for (page, file), length in kept.items() if (page, file) != name]
        of_page = sum(length for page, length in others if page == name[0])
        return of_page + more <= MOST_BYTES and sum(length for _, length in others) + more <= MOST_BYTES_IN_ALL
