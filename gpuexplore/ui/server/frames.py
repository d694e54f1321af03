"""Ends a websocket whose frames no browser of ours sends, with a sentence instead of a traceback."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gpuexplore.ui.undocumented import is_client_message

INVALID_FRAME = 1007  # RFC 6455, 7.4.1
REFUSAL = "Accepted are binary frames, each one message of Streamlit's browser client."


class FrameCheck:
    """Closes a websocket at its first frame that cannot be read."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a websocket on with its frames checked, everything else as it is."""
        if scope["type"] == "websocket":
            connection = _Checked(receive, send)
            await self._app(scope, connection.receive, connection.send)
        else:
            await self._app(scope, receive, send)


class _Checked:
    """A websocket that is over for the app once a frame was refused."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send
        self._refused = False

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] != "websocket.receive" or _is_readable(message.get("bytes")):
            return message
        self._refused = True
        await self._send({"type": "websocket.close", "code": INVALID_FRAME, "reason": REFUSAL})
        return {"type": "websocket.disconnect", "code": INVALID_FRAME}

    async def send(self, message: Message) -> None:
        if not self._refused:
            await self._send(message)


def _is_readable(frame: bytes | None) -> bool:
    return frame is not None and is_client_message(frame)
