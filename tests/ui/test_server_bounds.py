"""Bounds of a server, so that it answers whatever is sent: connections, pages, uploads and its own log."""

import asyncio
import errno
import logging
import re
import resource
import time
from contextlib import asynccontextmanager, closing, suppress
from functools import partial
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from types import MappingProxyType
from unittest.mock import Mock

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from gpuexplore.ui.server import connections, middleware
from gpuexplore.ui.server.lifespan import MAX_LOG_LINES, MAX_TRACEBACKS, NEVER, _bounded_records
from scripts.app_server import free_port
from tests.ui.visitor import visiting
from tests.waiting import DEADLINE_S

MOST = 8
LATE_S = 0.2  # until a route answers
WRITERS = []  # of the connections of a test, closed at its end
HELLO = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"


class Few(connections._Descriptors):
    """Descriptors of a process that has them for MOST connections, less those that are promised to pages."""

    def __init__(self, here):
        super().__init__()
        self.here, self.less = here, 0

    def free(self):
        return MOST - len(self.here._open) - self._promised - self.less


@asynccontextmanager
async def bounded():
    """Serve some routes and a websocket with few descriptors; yield the port and the connections."""
    here = connections._Connections()
    sent = []

    async def late(_):
        sent.append(1)
        await asyncio.sleep(LATE_S)
        most.append(len(sent))
        sent.pop()
        return PlainTextResponse("late")

    async def echo(socket):
        await socket.accept()
        async for text in socket.iter_text():
            await socket.send_text(text)

    async def body(request):
        return PlainTextResponse(await request.body())

    async def hello(_):
        return PlainTextResponse("hello")

    most = here.most_sent = []
    routes = [
        Route("/", hello),
        Route("/body", body, methods=["POST"]),
        Route("/late", late),
        Route("/static/late", late),
        WebSocketRoute("/echo", echo),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connections, "CONNECTIONS", here)
        patch.setattr(connections, "DESCRIPTORS", Few(here))
        patch.setattr(connections, "_most_descriptors", lambda: 4 * (MOST - 2))
        patch.setattr(connections, "SPARE", 0)
        app, port = connections.bound_answers(Starlette(routes=routes)), free_port()
        here.servers = []
        usual = connections._BoundedServer
        patch.setattr(
            connections, "_BoundedServer", lambda *each: here.servers.append(usual(*each)) or here.servers[-1]
        )
        here.bound(asyncio.get_running_loop())
        server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error", lifespan="off"))
        served = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        try:
            yield port, here
        finally:
            for writer in WRITERS:
                writer.close()
                with suppress(OSError):
                    await writer.wait_closed()
            WRITERS.clear()
            server.should_exit = True
            await served


async def opened(port, text=b""):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    WRITERS.append(writer)
    writer.write(text)
    return reader, writer


async def answer(port, text=HELLO):
    reader, _ = await opened(port, text.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    return await asyncio.wait_for(reader.read(), DEADLINE_S)


HALF_OPEN = {
    "nothing sent": b"",
    "headers without an end": b"GET / HTTP/1.1\r\nHost: here\r\n",
    "answered and kept": HELLO,
}


@pytest.mark.parametrize("text", HALF_OPEN.values(), ids=HALF_OPEN)
def test_connections_that_ask_nothing_give_way_to_one_that_does(text):
    async def crowded():
        async with bounded() as (port, here):
            for _ in range(5 * MOST):
                await opened(port, text)
            return await answer(port), len(here._open)

    found, most = asyncio.run(crowded())

    assert found.startswith(b"HTTP/1.1 200")
    assert most <= MOST


def test_answers_in_the_making_do_not_give_way_and_what_waits_is_answered_after_them():
    async def crowded():
        async with bounded() as (port, _):
            asked = [answer(port, HELLO.replace(b"/ ", b"/late ")) for _ in range(3 * MOST)]
            return await asyncio.gather(*asked)

    assert {found[-4:] for found in asyncio.run(crowded())} == {b"late"}


def test_a_body_that_never_arrives_gives_way_after_a_while(monkeypatch):
    monkeypatch.setattr(connections, "SILENT_S", 0.3)

    async def crowded():
        async with bounded() as (port, here):
            for _ in range(2 * MOST):
                await opened(port, b"POST /body HTTP/1.1\r\nHost: here\r\nContent-Length: 9\r\n\r\nto")
            while not here._open:
                await asyncio.sleep(0.01)
            return await answer(port)

    assert asyncio.run(crowded()).startswith(b"HTTP/1.1 200")


def test_a_request_that_never_ends_its_headers_is_over_after_a_while(monkeypatch):
    monkeypatch.setattr(connections, "HEADERS_S", 0.2)

    async def trickled():
        async with bounded() as (port, _):
            reader, _ = await opened(port, HELLO[:20])
            began_s = time.monotonic()
            assert await asyncio.wait_for(reader.read(), DEADLINE_S) == b""
            monkeypatch.setattr(connections, "HEADERS_S", 1.0)  # more than three parts take on a busy machine
            slowly, other = await opened(port)
            for part in (HELLO[:20], HELLO[20:-1], HELLO[-1:]):  # parts of a header that ends in two of them
                other.write(part)
                await asyncio.sleep(0.01)
            kept = await slowly.readuntil(b"hello")
            await asyncio.sleep(2 * connections.HEADERS_S)  # which is over for those that asked
            other.write(HELLO)
            again = await slowly.readuntil(b"hello")
            return time.monotonic() - began_s, kept, again

    took_s, kept, again = asyncio.run(trickled())

    assert took_s >= 0.2
    assert kept
    assert again


def test_a_websocket_is_no_connection_that_gives_way():
    async def crowded():
        async with bounded() as (port, here), connect(f"ws://127.0.0.1:{port}/echo") as socket:
            assert not here._open
            for _ in range(3 * MOST):
                await opened(port)
            assert (await answer(port)).startswith(b"HTTP/1.1 200")
            await socket.send("still here")
            return await socket.recv()

    assert asyncio.run(crowded()) == "still here"


def test_connections_give_way_to_a_page_and_it_is_refused_where_other_pages_take_the_room(monkeypatch):
    monkeypatch.setattr(connections, "PATIENCE_S", 1.0)

    async def crowded():
        async with bounded() as (port, _):
            for _ in range(MOST - 1):
                await opened(port, HELLO)
            async with connect(f"ws://127.0.0.1:{port}/echo"):
                connections.DESCRIPTORS.less = MOST - 1
                with pytest.raises(InvalidStatus):
                    await connect(f"ws://127.0.0.1:{port}/echo")

    asyncio.run(crowded())


def test_pages_that_open_at_once_are_counted_before_they_have_descriptors():
    async def crowded():
        async with bounded() as (port, _):
            async with asyncio.timeout(DEADLINE_S):
                found = [connect(f"ws://127.0.0.1:{port}/echo") for _ in range(20)]
                return [await each.close() for each in await asyncio.gather(*found)]

    assert len(asyncio.run(crowded())) == 20


def test_a_connection_that_cannot_be_accepted_is_not_the_last(monkeypatch):
    async def troubled():
        async with bounded() as (port, here):
            take, troubles = here._take, [ValueError("odd"), OSError("gone")]

            def odd(*arguments):
                if troubles:
                    arguments[-1].close()
                    raise troubles.pop()
                take(*arguments)

            monkeypatch.setattr(here, "_take", odd)
            for server in here.servers:
                server._take = partial(odd, *server._take.args)
            for _ in range(2):
                await opened(port)
            return await answer(port)

    assert asyncio.run(troubled()).startswith(b"HTTP/1.1 200")


def test_few_files_are_sent_at_a_time_where_few_more_can_be_opened(monkeypatch):
    monkeypatch.setattr(connections, "MAX_STATIC_REQUESTS", 2)

    async def crowded():
        async with bounded() as (port, here):
            asked = [answer(port, HELLO.replace(b"/ ", b"/static/late ")) for _ in range(6)]
            return await asyncio.gather(*asked), max(here.most_sent)

    found, most = asyncio.run(crowded())

    assert {each[-4:] for each in found} == {b"late"}
    assert most <= 2


def test_a_request_is_the_last_of_its_connection_while_others_wait():
    async def crowded():
        async with bounded() as (port, here):
            reader, writer = await opened(port)
            while not here._open:
                await asyncio.sleep(0.01)
            connections.DESCRIPTORS.less = MOST
            writer.write(HELLO)
            return await asyncio.wait_for(reader.read(), DEADLINE_S)  # to its end

    assert b"connection: close" in asyncio.run(crowded())


def test_descriptors_are_counted_in_the_kernels_list(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1000, 1000))
    found = connections._Descriptors()
    before = found.free()
    assert 0 < before < 1000

    with found.promised(8), Path("/dev/null").open():
        assert found.free() == before - 8
    assert found.free() == before - 8, "open until the next look sees what is"
    found.begin()
    assert found.free() == before - 9, "as counted, and what was begun since"
    monkeypatch.setattr(connections, "CALM_S", -1.0)
    with Path("/dev/null").open(), Path("/dev/zero").open():
        assert found.free() == before - 2, "counted anew"

    monkeypatch.setattr(connections, "OPEN_FILES", Path("/nowhere"))
    assert connections._Descriptors().free() == 1000, "where nothing says so"
    monkeypatch.setattr(connections.os, "scandir", Mock(side_effect=OSError(errno.EMFILE, "none left")))
    assert connections._Descriptors().free() == 0
    assert connections._spare() == connections.SPARE
    monkeypatch.setattr(resource, "getrlimit", lambda _: (128, 128))
    assert connections._spare() == 16

    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert connections._most_descriptors() == 2**20


class Uploader:
    """A browser's uploads, with the token that Streamlit wants to see in them."""

    def __init__(self, address, page):
        self.port, self.page = int(address.rpartition(":")[2]), page
        _, headers, _ = self._ask("GET", "/_stcore/health")
        (token,) = re.findall("_streamlit_xsrf=([^;]*)", headers["Set-Cookie"])
        self.token = {"X-Xsrftoken": token, "Cookie": f"_streamlit_xsrf={token}"}

    def put(self, file, size):
        form = b'--x\r\nContent-Disposition: form-data; name="f"; filename="a.json"\r\n\r\n%b\r\n--x--\r\n'
        kind = {"Content-Type": "multipart/form-data; boundary=x"}
        status, _, text = self._ask("PUT", self._path(file), form % (b"x" * size), self.token | kind)
        return status, text

    def delete(self, file):
        return self._ask("DELETE", self._path(file), None, self.token)[0]

    def _path(self, file):
        return f"/_stcore/upload_file/{self.page}/{file}"

    def _ask(self, method, path, body=None, headers=MappingProxyType({})):
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_S)) as connection:
            connection.request(method, path, body, headers)
            found = connection.getresponse()
            return found.status, found.headers, found.read().decode()


@pytest.mark.long
def test_a_page_holds_twenty_megabytes_of_uploads(address):
    with visiting(address, "trace") as visitor:
        visitor.run()
        page = Uploader(address, visitor.session)
        taken = [page.put(f"file{number}", 4_500_000)[0] for number in range(5)]
        assert taken == [204, 204, 204, 204, 413]
        assert page.put("file0", 4_500_000)[0] == 204, "in the place of itself"
        assert page.put("another", 4_500_000) == (413, middleware.TOO_MUCH)

        assert page.delete("file0") == 204
        assert page.put("another", 4_500_000)[0] == 204
    assert Uploader(address, "no-session").put("file", 100)[0] == 400


async def asked(app, **headers):
    sent = []

    async def send(message):
        sent.append(message)

    async def receive():
        return {"type": "http.request", "body": b""}

    listed = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    path = "/base/_stcore/upload_file/page/file"
    await app({"type": "http", "method": "PUT", "path": path, "headers": listed}, receive, send)
    return sent[0]["status"]


def test_an_upload_says_its_length_and_all_pages_together_have_a_bound(monkeypatch):
    app = middleware.bound_uploads(PlainTextResponse("taken"))
    monkeypatch.setattr(middleware, "MAX_UPLOAD_BYTES", 100)

    assert asyncio.run(asked(app)) == HTTPStatus.LENGTH_REQUIRED
    assert asyncio.run(asked(app, content_length="-5")) == HTTPStatus.LENGTH_REQUIRED
    assert asyncio.run(asked(app, content_length="101")) == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    assert asyncio.run(asked(app, content_length="9" * 5000)) == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    assert asyncio.run(asked(app, content_length="100")) == HTTPStatus.OK


def record(make, line, error=None):
    return make("asyncio", logging.ERROR, "loop.py", line, "no descriptor left: %s", ("x",), error)


def test_a_line_that_repeats_loses_its_traceback_and_is_counted_instead():
    now = [0.0]
    make = _bounded_records(logging.LogRecord, lambda: now[0])
    trouble = (ValueError, ValueError("no"), None)

    written = [record(make, 1, trouble) for _ in range(MAX_LOG_LINES + 50)]
    assert [each.exc_info is not None for each in written] == [True] * MAX_TRACEBACKS + [False] * (MAX_LOG_LINES + 30)
    assert sum(each.levelno == NEVER for each in written) == 50
    assert record(make, 2, trouble).exc_info is not None, "another line"

    now[0] = 61.0
    again = record(make, 1, trouble)
    assert again.getMessage() == "no descriptor left: x (50 more of them were left out)"
    assert again.exc_info is not None
    assert record(make, 1).getMessage() == "no descriptor left: x"


def test_no_handler_writes_what_is_left_out(capsys):
    before = logging.getLogRecordFactory()
    logger, handler = logging.getLogger("gpuexplore.bounded"), logging.StreamHandler()
    logger.addHandler(handler)
    try:
        logging.setLogRecordFactory(_bounded_records(before))
        for _ in range(3 * MAX_LOG_LINES):
            logger.error("the same")
    finally:
        logging.setLogRecordFactory(before)
        logger.removeHandler(handler)

    assert capsys.readouterr().err.count("the same") == MAX_LOG_LINES
