"""Bounded connections: those that a process has no descriptors for wait, and those that ask nothing give way.

Without a free descriptor a server accepts no connection, reads no file and starts no page, its health's answer
included. A browser opens six connections, each of which may have a file open; the page itself takes four for as long as
it lives (Streamlit keeps an event loop for it).
"""

import asyncio
import os
import resource
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from socket import socket
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS_S = 10.0  # until the headers of a connection's first request have arrived
SILENT_S = 30.0  # without a byte from the browser, after which a connection gives way to one that waits
LOOK_S, LOOKS = 0.025, 4  # while connections wait; so often one without a request is looked at before it gives way
SHARE = 4  # one of so many descriptors may be a connection that is no page's
SPARE_FOR_PAGES, SPARE_FOR_FILES = 128, 32  # descriptors that connections, and pages, leave free


class Connections:
    """The open connections of a process that are no page's, by age.

    Attributes:
        most: how many there may be; the next ones wait in the kernel's queue.
    """

    def __init__(self) -> None:
        self._open: dict[Watched, None] = {}
        self._arriving = set[asyncio.Task[None]]()

    @property
    def most(self) -> int:
        """Return how many there may be, of the descriptors that the process may have."""
        return _most_descriptors() // SHARE

    def bound(self, loop: asyncio.AbstractEventLoop) -> None:
        """Have the servers that a loop starts from now on keep to these bounds; uvloop's own loops stay as they are."""
        start = loop.create_server

        async def create_server(*arguments: Any, **options: Any) -> Any:
            factory, *others = arguments
            server = await start(factory, *others, **options, start_serving=False)
            return BoundedServer(server, partial(self._take, factory, options.get("ssl")), self)

        with suppress(AttributeError):
            loop.create_server = create_server  # type: ignore[method-assign]

    def is_full(self) -> bool:
        """Return whether the next connection must wait."""
        return len(self._open) + len(self._arriving) >= self.most or not has_spare(SPARE_FOR_PAGES)

    def give_way(self) -> None:
        """Close connections that have asked nothing for a few looks, and those that were silent for long."""
        silent_since_s = asyncio.get_running_loop().time() - SILENT_S
        for each in list(self._open):
            each.looks += 1
            if each.heard_s < silent_since_s:
                each.transport.abort()
            elif not each.answers and each.looks > LOOKS:
                each.transport.close()

    def _take(self, factory: Callable[[], asyncio.Protocol], ssl: Any, connected: socket) -> None:
        """Have a connection served, once its encryption is agreed upon."""
        loop = asyncio.get_running_loop()

        async def serve() -> None:
            limits = {"ssl_handshake_timeout": HEADERS_S} if ssl else {}
            with suppress(OSError):  # gone again, or not encrypted as it should be
                await loop.connect_accepted_socket(
                    lambda: _watched(factory(), self._open), connected, ssl=ssl, **limits
                )

        task = loop.create_task(serve())
        self._arriving.add(task)
        task.add_done_callback(self._arriving.discard)


class Watched(asyncio.Protocol):
    """A connection with the protocol that serves it; left alone once it is a websocket.

    Attributes:
        transport: of what is sent; None until it is connected.
        answers: how many of its requests are being answered.
        heard_s: when it last sent something, by the loop's clock.
        looks: how often it was looked at since then while others waited.
    """

    def __init__(self, protocol: asyncio.Protocol, connections: dict["Watched", None]) -> None:
        self._protocol, self._open = protocol, connections
        self._loop = asyncio.get_running_loop()
        self._has_asked, self._end = False, b""
        self.answers, self.heard_s, self.looks = 0, self._loop.time(), 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to be counted."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._late = self._loop.call_later(HEADERS_S, transport.abort)
        self._open[self] = None
        self._protocol.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Pass on what has arrived."""
        self.heard_s = self._loop.time()
        if not self._has_asked:
            text = self._end + data
            self._has_asked, self._end = b"\n\r\n" in text or b"\n\n" in text, text[-2:]
            if self._has_asked:
                self.looks = 0
                self._late.cancel()
        self._protocol.data_received(data)
        if self.transport.get_protocol() is not self:
            self._leave()

    def eof_received(self) -> bool | None:
        """Pass on that no more will arrive."""
        return self._protocol.eof_received()

    def pause_writing(self) -> None:
        """Pass on that what was sent has not been taken yet."""
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        """Pass on that more may be sent."""
        self._protocol.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        """Be counted no more."""
        self._leave()
        self._protocol.connection_lost(error)

    def _leave(self) -> None:
        self._late.cancel()
        self._open.pop(self, None)


class BoundedServer:
    """A server that accepts a connection when there is room for it."""

    def __init__(self, server: asyncio.Server, take: Callable[[socket], None], connections: Connections) -> None:
        self._server, self._take, self._connections = server, take, connections
        self._accepting = [asyncio.create_task(self._accept(each.fileno())) for each in server.sockets]

    @property
    def sockets(self) -> tuple[Any, ...]:
        """Return the sockets that it listens on."""
        return tuple(self._server.sockets)

    def close(self) -> None:
        """Accept no more connections."""
        for task in self._accepting:
            task.cancel()
        self._server.close()

    async def wait_closed(self) -> None:
        """Return once no more are accepted."""
        await asyncio.gather(*self._accepting, return_exceptions=True)
        await self._server.wait_closed()

    async def _accept(self, number: int) -> None:
        loop, connections = asyncio.get_running_loop(), self._connections
        with socket(fileno=os.dup(number)) as listener:
            listener.setblocking(False)
            listener.listen(2048)  # as uvicorn
            while True:
                try:
                    connected, _ = await loop.sock_accept(listener)
                    self._take(connected)
                except OSError:  # no descriptor is left, or the browser has gone
                    await asyncio.sleep(LOOK_S)
                await asyncio.sleep(0)  # what is accepted is read first
                while connections.is_full():
                    connections.give_way()
                    await asyncio.sleep(LOOK_S)


CONNECTIONS = Connections()  # of this process
_CONNECTION: ContextVar[Watched | None] = ContextVar("connection", default=None)  # whose request is answered


class BoundedPages:
    """Ends a connection after its answer while others wait, and refuses a page that has no descriptors left."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; a websocket that is refused is tried again by its browser."""
        if scope["type"] == "websocket" and not has_spare(SPARE_FOR_FILES):
            await receive()
            await send({"type": "websocket.close"})
        elif scope["type"] == "http" and (connection := _CONNECTION.get()):
            connection.answers += 1
            try:
                await self._app(scope, receive, partial(_last, send) if CONNECTIONS.is_full() else send)
            finally:
                connection.answers -= 1
                connection.looks = 0
        else:
            await self._app(scope, receive, send)


def _watched(protocol: asyncio.Protocol, connections: dict[Watched, None]) -> Watched:
    watched = Watched(protocol, connections)
    _CONNECTION.set(watched)  # asyncio calls what reads it, and so what answers, in this context
    return watched


async def _last(send: Send, message: Message) -> None:
    if message["type"] == "http.response.start":
        MutableHeaders(scope=message)["connection"] = "close"
    await send(message)


def has_spare(count: int) -> bool:
    """Return whether more than so many descriptors are free: the lowest free one is below all those."""
    try:
        number = os.dup(2)
    except OSError:
        return False
    os.close(number)
    return number < _most_descriptors() - count


def _most_descriptors() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft if soft != resource.RLIM_INFINITY else 2**20
