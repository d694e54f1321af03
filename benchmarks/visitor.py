"""A browser without a screen: Streamlit's websocket and protocol, fragments that rerun, and the message cache.

What a real browser does and a load test needs: it says which large messages it still has, so that the server sends
references, and it sends a rerun at each interval that a fragment asked for, whether the last one has ended or not.
"""

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field

import streamlit  # noqa: F401  # before its protocol, which it alone can load
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect

from gpuexplore.ui.identity import OWNER_COOKIE

LONGEST_S = 60.0  # a page that is not there by then counts as this late
CACHED_RUNS = 2  # for so many full reruns a browser keeps a message (`global.maxCachedMessageAge`)


@dataclass(slots=True)
class Visitor:
    """One open page.

    Attributes:
        address: of the server, like ``http://127.0.0.1:8501``.
        page: path of the page, empty for the start page.
        query: its parameters, without the question mark.
        owner: what the browser's cookie says; empty for a browser without one.
        ticks_s: seconds from each automatic rerun of a fragment to the end of the run that drew it.
        received_bytes: what the server sent.
        errors: exceptions that the page showed.
    """

    address: str
    page: str = ""
    query: str = ""
    owner: str = ""
    ticks_s: list[float] = field(default_factory=list)
    received_bytes: int = 0
    errors: list[str] = field(default_factory=list)
    _socket: ClientConnection | None = None
    _reader: asyncio.Task[None] | None = None
    _timers: dict[str, tuple[float, asyncio.Task[None]]] = field(default_factory=dict)
    _cached: dict[str, int] = field(default_factory=dict)  # hash of a message: the run it was last used in
    _script_hash: str = ""
    _runs: int = 0
    _drawn: tuple[str, ...] = ()  # the fragments of the run that goes on; none is the whole page
    _sent_s: dict[str, list[float]] = field(default_factory=dict)  # ticks without a run
    _answered_s: list[float] = field(default_factory=list)  # when its ticks were sent
    _rendered: asyncio.Event = field(default_factory=asyncio.Event)

    async def open(self) -> float:
        """Open the page; return the seconds until its script has ended, at most LONGEST_S."""
        started_s = time.perf_counter()
        self._socket = await connect(
            f"{self.address.replace('http', 'ws', 1)}/_stcore/stream",
            subprotocols=["streamlit"],
            origin=self.address,
            additional_headers={"Cookie": f"{OWNER_COOKIE}={self.owner}"} if self.owner else None,
            max_size=None,
            open_timeout=LONGEST_S,
            ping_interval=None,
        )
        self._reader = asyncio.create_task(self._read(self._socket))
        await self._rerun()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._rendered.wait(), LONGEST_S)
        if self._reader.done():
            self._reader.result()
        return time.perf_counter() - started_s

    async def close(self) -> None:
        """Close the tab."""
        self._stop_timers()
        if self._reader:
            self._reader.cancel()
        if self._socket:
            await self._socket.close()

    async def _rerun(self, fragment: str = "") -> None:
        message = BackMsg()
        client = message.rerun_script
        client.query_string, client.fragment_id, client.is_auto_rerun = self.query, fragment, bool(fragment)
        client.cached_message_hashes.extend(self._cached)
        if self._script_hash:
            client.page_script_hash = self._script_hash
        else:
            client.page_name = self.page
        assert self._socket
        await self._socket.send(message.SerializeToString())

    async def _read(self, socket: ClientConnection) -> None:
        try:
            async for data in socket:
                assert isinstance(data, bytes)
                self.received_bytes += len(data)
                self._take(ForwardMsg.FromString(data))
        finally:
            self._rendered.set()

    def _take(self, message: ForwardMsg) -> None:
        kind = message.WhichOneof("type")
        if message.metadata.cacheable or kind == "ref_hash":
            self._cached[message.ref_hash or message.hash] = self._runs
        if kind == "new_session":
            self._script_hash = message.new_session.page_script_hash
            self._drawn = tuple(message.metadata.run.fragment_ids)
            answered = self._drawn or tuple(self._sent_s)
            self._answered_s = [sent_s for fragment in answered for sent_s in self._sent_s.pop(fragment, ())]
            if not self._drawn:
                self._stop_timers()
        elif kind == "auto_rerun":
            self._start_timer(message.auto_rerun.fragment_id, message.auto_rerun.interval)
        elif kind == "stop_auto_rerun":
            for fragment in message.stop_auto_rerun.fragment_ids:
                self._stop_timer(fragment)
        elif kind == "page_info_changed":
            self.query = message.page_info_changed.query_string
        elif kind == "delta" and message.delta.new_element.WhichOneof("type") == "exception":
            self.errors.append(message.delta.new_element.exception.message)
        elif kind == "script_finished":
            self._finished(message)

    def _finished(self, message: ForwardMsg) -> None:
        now_s = time.perf_counter()
        self.ticks_s += [now_s - sent_s for sent_s in self._answered_s]
        self._answered_s = []
        if self._drawn or message.script_finished == ForwardMsg.FINISHED_EARLY_FOR_RERUN:
            return  # a fragment's run, or one that was cut off
        self._runs += 1
        self._cached = {name: run for name, run in self._cached.items() if self._runs - run <= CACHED_RUNS}
        self._rendered.set()

    def _start_timer(self, fragment: str, interval_s: float) -> None:
        if fragment in self._timers and self._timers[fragment][0] == interval_s:
            return
        self._stop_timer(fragment)
        self._timers[fragment] = interval_s, asyncio.create_task(self._tick(fragment, interval_s))

    async def _tick(self, fragment: str, interval_s: float) -> None:
        due_s = time.perf_counter()
        while True:
            due_s += interval_s
            await asyncio.sleep(max(0.0, due_s - time.perf_counter()))
            self._sent_s.setdefault(fragment, []).append(time.perf_counter())
            await self._rerun(fragment)

    def _stop_timer(self, fragment: str) -> None:
        if found := self._timers.pop(fragment, None):
            found[1].cancel()

    def _stop_timers(self) -> None:
        for fragment in list(self._timers):
            self._stop_timer(fragment)
