"""Bounded connections: those that a process has no descriptors for wait, and those that ask nothing give way.

Without a free descriptor a server accepts no connection, reads no file and starts no page, its health's answer
included. A browser opens six connections, each of which may have a file open; the page itself takes four for as long as
it lives (Streamlit keeps an event loop for it).
"""

import asyncio
import errno
import logging
import math
import os
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from itertools import count
from pathlib import Path
from socket import socket
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOG = logging.getLogger(__name__)
HEADERS_S = 10.0  # until the headers of a connection's first request have arrived
SILENT_S = 120.0  # without a byte to or from the browser, after which a connection gives way to one that waits
POLL_S = 0.025  # while connections wait
PATIENCE_S = 10.0  # that a page waits for connections to give way
CALM_S = 1.0
OPEN_FILES = Path("/dev/fd")
SPARE = 64
MAX_STATIC_REQUESTS = 16  # so many are sent at a time however few descriptors are left


class _Descriptors:
    """The descriptors that are free in this process: listed by the kernel, and between two lists by what is begun."""

    def __init__(self) -> None:
        self._free = 0
        self._counted_s = -CALM_S
        self._promised = 0

    def free(self) -> int:
        """Return how many are free; while most are, as they were within a second."""
        now_s = time.monotonic()
        most = _most_descriptors()
        if now_s - self._counted_s > (POLL_S if self._free < most // 2 else CALM_S):
            self._free = most - _open_files(most)
            self._counted_s = now_s
        return self._free - self._promised

    def begin(self) -> None:
        """Take one as open until the next look."""
        self._free -= 1

    @contextmanager
    def promised(self, number: int) -> Iterator[None]:
        """Take so many as open until the block ends."""
        self._promised += number
        try:
            yield
        finally:
            self._promised -= number
            self._free -= number  # until the next look sees those that are open now


def _open_files(most: int) -> int:
    """Return how many files this process has open; all it may where none is left to look with, none where none says."""
    try:
        with os.scandir(OPEN_FILES) as listed:
            return sum(1 for _ in listed)
    except OSError as error:
        return most if error.errno in (errno.EMFILE, errno.ENFILE) else 0


def _spare() -> int:
    """Return how many descriptors connections leave free: for what is read, and for processes."""
    return min(SPARE, _most_descriptors() // 8)


class _Connections:
    """The open connections of a process that are no page's, by age."""

    def __init__(self) -> None:
        self._open: dict[_Watched, None] = {}
        self._arriving = set[asyncio.Task[None]]()
        self._looked_s = 0.0

    def bound(self, loop: asyncio.AbstractEventLoop) -> None:
        """Have the servers that a loop starts from now on keep to these bounds; uvloop's own loops stay as they are."""
        start = loop.create_server

        async def create_server(*arguments: Any, **options: Any) -> Any:
            factory, *others = arguments
            server = await start(factory, *others, **options, start_serving=False)
            return _BoundedServer(server, partial(self._take, factory, options.get("ssl")), self)

        with suppress(AttributeError):
            loop.create_server = create_server  # type: ignore[method-assign]

    def give_way(self) -> None:
        """Close connections that ask nothing for a few looks, and those that were silent for long."""
        now_s = asyncio.get_running_loop().time()
        if now_s - self._looked_s < POLL_S:
            return
        self._looked_s = now_s
        for each in list(self._open):
            each.looks += 1
            if now_s - each.heard_s > SILENT_S:
                each.transport.abort()
            elif not each.answers and each.looks > (4 if each.has_asked else 20):  # the headers may be on their way
                each.transport.close()

    async def until(self, has_capacity: Callable[[], bool], patience_s: float = math.inf) -> bool:
        """Return whether there is capacity; connections give way, and the caller goes on before another one does."""
        latest_s = time.monotonic() + patience_s
        while not has_capacity():
            if time.monotonic() > latest_s:
                return False
            self.give_way()
            await asyncio.sleep(POLL_S)
        return True

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


class _Watched(asyncio.Protocol):
    """A connection with the protocol that serves it; left alone once it is a websocket.

    Attributes:
        transport: of what is sent, once it is connected.
        has_asked: the headers of a request have arrived.
        answers: how many of its requests are being answered.
        heard_s: when it last sent or took something, by the loop's clock.
        looks: how often it was looked at since then while others waited.
    """

    def __init__(self, protocol: asyncio.Protocol, connections: dict["_Watched", None]) -> None:
        self._protocol = protocol
        self._open = connections
        self._loop = asyncio.get_running_loop()
        self._end = b""
        self.has_asked = False
        self.answers = 0
        self.heard_s = self._loop.time()
        self.looks = 0

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
        if not self.has_asked:
            text = self._end + data
            self.has_asked = b"\n\r\n" in text or b"\n\n" in text
            self._end = text[-2:]
            if self.has_asked:
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
        self.heard_s = self._loop.time()
        self._protocol.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        """Be counted no more."""
        self._leave()
        self._protocol.connection_lost(error)

    def _leave(self) -> None:
        self._late.cancel()
        self._open.pop(self, None)


class _BoundedServer:
    """A server that accepts a connection when there is capacity for it."""

    def __init__(self, server: asyncio.Server, take: Callable[[socket], None], connections: _Connections) -> None:
        self._server = server
        self._take = take
        self._connections = connections
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
        loop = asyncio.get_running_loop()
        with socket(fileno=os.dup(number)) as listener:
            listener.setblocking(False)
            listener.listen(2048)  # as uvicorn
            for taken in count():
                try:
                    connected, _ = await loop.sock_accept(listener)
                    DESCRIPTORS.begin()
                    self._take(connected)
                except OSError:  # no descriptor is left, or the browser has gone
                    await asyncio.sleep(POLL_S)
                except Exception:  # else no connection would be accepted any more
                    LOG.exception("A connection could not be accepted")
                    await asyncio.sleep(POLL_S)
                if taken % 16 == 0:  # each look at all takes a while where pages run
                    await asyncio.sleep(0)  # what is accepted is read first
                await self._connections.until(lambda: DESCRIPTORS.free() > _spare())


DESCRIPTORS = _Descriptors()  # of this process
CONNECTIONS = _Connections()
_CONNECTION: ContextVar[_Watched | None] = ContextVar("connection", default=None)  # whose request is answered


def bound_answers(app: ASGIApp) -> ASGIApp:
    """Send a file when it can be opened, end a connection while others wait, and bound the open pages.

    A websocket is passed on when there is capacity for its page, else its browser tries again.
    """
    files = 0
    opening_one = asyncio.Lock()  # so that other requests are answered between two pages that open

    async def open_page(scope: Scope, receive: Receive, send: Send) -> None:
        """Open a page once there is capacity for it; connections give way to it, other pages do not."""
        # Pages leave a quarter of the descriptors to connections
        if not await CONNECTIONS.until(lambda: DESCRIPTORS.free() > _most_descriptors() // 4, PATIENCE_S):
            await receive()
            await send({"type": "websocket.close"})
            return
        async with AsyncExitStack() as opening:
            await opening.enter_async_context(opening_one)
            opening.enter_context(DESCRIPTORS.promised(8))  # four while it stays, the rest for what draws it first
            asked = count()

            async def receive_more() -> Message:
                if next(asked):  # not for the first time: Streamlit has made the page's session
                    await opening.aclose()
                return await receive()

            await app(scope, receive_more, send)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal files
        is_file = "/static/" in scope["path"]
        if is_file:
            await CONNECTIONS.until(lambda: files < max(MAX_STATIC_REQUESTS, DESCRIPTORS.free() // 2))
            DESCRIPTORS.begin()
        files += is_file
        try:
            await app(scope, receive, send)
        finally:
            files -= is_file

    async def bounded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await open_page(scope, receive, send)
        elif scope["type"] == "http":
            with _answering():
                await answer(scope, receive, send if DESCRIPTORS.free() > 2 * _spare() else partial(_last, send))
        else:
            await app(scope, receive, send)

    return bounded


@contextmanager
def _answering() -> Iterator[None]:
    """Note that this connection is not idle."""
    connection = _CONNECTION.get()
    if connection is None:  # not one of a bounded server
        yield
        return
    connection.answers += 1
    try:
        yield
    finally:
        connection.answers -= 1
        connection.looks = 0


def _watched(protocol: asyncio.Protocol, connections: dict[_Watched, None]) -> _Watched:
    watched = _Watched(protocol, connections)
    _CONNECTION.set(watched)  # asyncio calls what reads it, and so what answers, in this context
    return watched


async def _last(send: Send, message: Message) -> None:
    if message["type"] == "http.response.start":
        MutableHeaders(scope=message)["connection"] = "close"
    await send(message)


def _most_descriptors() -> int:
    """Return how many descriptors this process may have."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft if soft != resource.RLIM_INFINITY else 2**20
