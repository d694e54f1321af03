"""Clients of a server besides pages: half-open connections, browsers with an empty cache, and uploads.

For `benchmarks.attack` and the tests of faults; nothing here measures.
"""

import asyncio
import re
from asyncio import IncompleteReadError, StreamReader, StreamWriter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import streamlit
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.exceptions import InvalidStatus

from benchmarks.visitor import LONGEST_S, Visitor

CONNECTIONS = 6  # of a browser to a server, HTTP/1.1
FILE_S = 240.0  # a browser waits longer
TRIES, AGAIN_S = 10, 1.0  # of a page's websocket
LAZY = 24  # of the scripts that pages load when they need them, the largest
REFERENCE = re.compile(r'(?:src|href)="\./([^"]+\.(?:js|css|woff2))"')
HALF_OPEN = (
    b"",
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n",
    b"POST /api/room HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n",
)


class Connection:
    """A connection that is kept between requests, as a browser's: opened anew where the server has closed it."""

    def __init__(self, address: str) -> None:
        where = urlsplit(address)
        self._host, self._port = str(where.hostname), int(where.port or 80)
        self._streams: tuple[StreamReader, StreamWriter] | None = None

    async def get(self, path: str) -> bytes:
        """Return what is served under a path.

        Raises:
            OSError: it was not served whole.
        """
        kept = self._streams
        try:
            self._streams = kept or await asyncio.open_connection(self._host, self._port)
            return await asyncio.wait_for(self._ask(*self._streams, path), FILE_S)
        except (OSError, IncompleteReadError) as error:
            self.close()
            if kept:
                return await self.get(path)
            raise OSError(f"{path} was not served: {error}") from error

    async def _ask(self, reader: StreamReader, writer: StreamWriter, path: str) -> bytes:
        request = f"GET {path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\nAccept-Encoding: gzip\r\n\r\n"
        writer.write(request.encode())
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        if b" 200 " not in head.partition(b"\r\n")[0]:
            raise OSError(head.decode())
        length = re.search(rb"content-length: (\d+)", head)
        body = await reader.readexactly(int(length[1])) if length else await _chunks(reader)
        if b"connection: close" in head:
            self.close()
        return body

    def close(self) -> None:
        """Close it."""
        if self._streams:
            self._streams[1].close()
        self._streams = None


async def _chunks(reader: StreamReader) -> bytes:
    parts = list[bytes]()
    while size := int(await reader.readline(), 16):
        parts.append(await reader.readexactly(size))
        await reader.readexactly(2)
    await reader.readexactly(2)
    return b"".join(parts)


@dataclass(slots=True)
class ColdBrowser(Visitor):
    """A browser with an empty cache: it loads Streamlit's files before it opens the page."""

    _connections: list[Connection] = field(default_factory=list)

    async def open(self) -> float:
        """Load the files over six connections, then the page; return the seconds of all.

        Raises:
            OSError: a file was not served, or the page not drawn.
        """
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        self._connections = [Connection(self.address) for _ in range(CONNECTIONS)]
        first = self._connections[0]
        wanted = list(dict.fromkeys(REFERENCE.findall((await first.get("/")).decode(errors="replace")) + lazy_files()))

        async def load(connection: Connection) -> None:
            while wanted:
                await connection.get(f"/{wanted.pop()}")

        await asyncio.gather(*map(load, self._connections))
        await first.get("/_stcore/health")
        for _ in range(TRIES):
            with suppress(InvalidStatus):  # refused for want of room: Streamlit's client tries again
                await Visitor.open(self)
                break
            await asyncio.sleep(AGAIN_S)
        if not self._script_hash:
            raise OSError("the page was not drawn")
        return loop.time() - began_s

    async def close(self) -> None:
        """Close the tab and its connections."""
        await Visitor.close(self)
        for connection in self._connections:
            connection.close()


def lazy_files() -> list[str]:
    """Return paths of Streamlit's largest scripts."""
    folder = Path(streamlit.__file__).parent / "static"
    largest = sorted(folder.rglob("*.js"), key=lambda path: path.stat().st_size)[-LAZY:]
    return [path.relative_to(folder).as_posix() for path in largest]


async def half_open(address: str, count: int) -> list[StreamWriter]:
    """Open connections that never ask anything to its end; return them."""
    where = urlsplit(address)

    async def opened(number: int) -> StreamWriter | None:
        with suppress(OSError):
            _, writer = await asyncio.open_connection(where.hostname, where.port)
            writer.write(HALF_OPEN[number % len(HALF_OPEN)])
            return writer
        return None

    return [writer for writer in await asyncio.gather(*map(opened, range(count))) if writer]


@dataclass(slots=True)
class Uploader(Visitor):
    """A page with a field for files, which it fills.

    Attributes:
        said: the messages that its last run showed.
        texts: and its other texts.
    """

    said: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    _session: str = ""
    _field: str = ""
    _choices: dict[str, str] = field(default_factory=dict)
    _choice: WidgetState | None = None
    _url: str = ""
    _there: asyncio.Event = field(default_factory=asyncio.Event)

    async def choose(self, label: str, value: str) -> None:
        """Choose one of a segmented control and wait until the page has been drawn.

        Raises:
            TimeoutError: the page did not draw the control within LONGEST_S.
        """
        if label not in self._choices:
            raise TimeoutError(f"{self.page} did not draw {label!r} within {LONGEST_S:g} s")
        self._choice = WidgetState(id=self._choices[label])
        self._choice.string_array_value.data.append(value)
        await self._run(self._choice)

    async def upload(self, name: str, content: bytes) -> int:
        """Send a file and wait until the page has been drawn with it; return the status that its upload had."""
        assert self._socket
        message = BackMsg()
        message.file_urls_request.request_id, message.file_urls_request.session_id = "one", self._session
        message.file_urls_request.file_names.append(name)
        await self._socket.send(message.SerializeToString())
        await asyncio.wait_for(self._there.wait(), LONGEST_S)
        status = await asyncio.to_thread(send_file, self.address, self._url, name, content)
        if status != 204:
            return status
        state = WidgetState(id=self._field)
        info = state.file_uploader_state_value.uploaded_file_info.add(
            name=name, size=len(content), file_id=self._url.rpartition("/")[2]
        )
        info.file_urls.upload_url = info.file_urls.delete_url = self._url
        info.file_urls.file_id = info.file_id
        await self._run(state, *([self._choice] if self._choice else []))
        return status

    async def _run(self, *states: WidgetState) -> None:
        assert self._socket
        message = BackMsg()
        message.rerun_script.widget_states.widgets.extend(states)
        message.rerun_script.page_name, message.rerun_script.query_string = self.page, self.query
        self.said.clear()
        self.texts.clear()
        self._rendered.clear()
        await self._socket.send(message.SerializeToString())
        with suppress(TimeoutError):
            await asyncio.wait_for(self._rendered.wait(), LONGEST_S)

    def _take(self, message: ForwardMsg) -> None:
        kind = message.WhichOneof("type")
        if kind == "new_session":
            self._session = message.new_session.initialize.session_id or self._session
        elif kind == "file_urls_response":
            self._url = message.file_urls_response.file_urls[0].upload_url
            self._there.set()
        elif kind == "delta":
            element = message.delta.new_element
            if element.WhichOneof("type") == "file_uploader":
                self._field = element.file_uploader.id
            elif element.WhichOneof("type") == "button_group":
                self._choices[element.button_group.label] = element.button_group.id
            elif element.WhichOneof("type") == "alert":
                self.said.append(element.alert.body)
            elif element.WhichOneof("type") == "markdown":
                self.texts.append(element.markdown.body)
            elif element.WhichOneof("type") == "progress":
                self.texts.append(element.progress.text)
        Visitor._take(self, message)


def send_file(address: str, path: str, name: str, content: bytes) -> int:
    """Upload a file as Streamlit's browser client does; return the status of the answer."""
    with urlopen(f"{address}/_stcore/health", timeout=LONGEST_S) as answer:
        token = str(answer.headers["Set-Cookie"]).partition("_streamlit_xsrf=")[2].partition(";")[0]
    form = b'--x\r\nContent-Disposition: form-data; name="f"; filename="%b"\r\n\r\n%b\r\n--x--\r\n'
    headers = {
        "Content-Type": "multipart/form-data; boundary=x",
        "X-Xsrftoken": token,
        "Cookie": f"_streamlit_xsrf={token}",
    }
    connection = HTTPConnection(urlsplit(address).netloc, timeout=LONGEST_S)
    try:
        connection.request("PUT", path, form % (name.encode(), content), headers)
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


async def drawn(browsers: Sequence[Visitor]) -> tuple[list[float], list[str]]:
    """Open all at once; return the seconds of those that were drawn, and why the others were not."""
    found = await asyncio.gather(*(browser.open() for browser in browsers), return_exceptions=True)
    failed = [f"{type(each).__name__}: {each}" for each in found if isinstance(each, BaseException)]
    return [each for each in found if not isinstance(each, BaseException)], failed
