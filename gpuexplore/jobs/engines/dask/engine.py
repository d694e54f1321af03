"""The engine of a cluster: one group is one task on the node that has the device."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from queue import Empty
from typing import Any

from distributed import Client, Event, Future, KilledWorker

from gpuexplore.errors import CANCELLED, DeviceLost, GpuExploreError, InvalidInput
from gpuexplore.jobs.engines.dask.cluster import LOST, Cluster, Departure, Inbox
from gpuexplore.jobs.engines.dask.node import measure_here
from gpuexplore.jobs.journal import Begun, decode_event
from gpuexplore.model import Case, Device, Result, Status
from gpuexplore.serialization import encode

TICK_S = 0.02
UNREPORTED = "the node reported nothing on this case"

OnEvent = Callable[[Case | Result], None]
IsCancelled = Callable[[], bool]


class DaskEngine:
    """Measures on a cluster's nodes, from several threads at once: each device takes one group at a time.

    Args:
        scheduler: its address.
        on_change: gets the devices of all nodes whenever one comes, changes or goes.
    """

    side_by_side = True

    def __init__(self, scheduler: str, on_change: Callable[[tuple[Device, ...]], None] = lambda _: None) -> None:
        self._cluster = Cluster(scheduler, on_change)

    def warm(self, device: Device) -> Device:
        """Return the device as its node announced it; nodes warm up by themselves.

        Raises:
            InvalidInput: no node has it.
            DeviceLost: its node left.
        """
        self._cluster.node_with(device.id)
        return self._cluster.devices()[device.id]

    def measure(self, cases: Sequence[Case], on_event: OnEvent, cancelled: IsCancelled) -> None:
        """Measure cases of one group; see `Engine.measure`.

        Raises:
            DeviceLost: the node left; cases without a result were not measured, and can be later.
            GpuExploreError: the engine on the node is broken.
        """
        try:
            inbox = self._cluster.open_inbox(self._cluster.node_with(cases[0].device))
        except InvalidInput as error:
            _end_all(cases, Status.UNSUPPORTED, str(error), on_event)
            return
        task = _Task(self._cluster, inbox, cases)
        try:
            with closing(task.events(cancelled)) as events:
                for event in events:
                    on_event(event)
        except _NodeCrashed as crash:
            if task.at_work:
                on_event(Result(task.at_work[-1], Status.CRASHED, f"{crash} while this case was measured"))
            raise DeviceLost(str(crash)) from crash
        finally:
            self._cluster.close_inbox(inbox)
        status, reason = (Status.CANCELLED, CANCELLED) if task.stopped else (Status.ERROR, UNREPORTED)
        _end_all(tuple(task.pending), status, reason, on_event)

    def close(self) -> None:
        """Disconnect; nodes stay, for other supervisors."""
        self._cluster.close()


class _NodeCrashed(GpuExploreError):
    """The node ended without having been told to: what it measured may be why."""


class _Task:
    """One group on its way.

    Attributes:
        pending: the cases without a result.
        at_work: those of them that the node took up, in that order.
        stopped: whether it was cancelled.
    """

    def __init__(self, cluster: Cluster, inbox: Inbox, cases: Sequence[Case]) -> None:
        self.pending = dict.fromkeys(cases)
        self.at_work: list[Case] = []
        self.stopped = False
        self._cluster, self._inbox = cluster, inbox
        self._device = inbox.node.devices[cases[0].device]
        self._asked = {replace(case, device=self._device.id): case for case in cases}
        self._begun = self._departed = False

    def events(self, cancelled: IsCancelled) -> Generator[Case | Result]:
        """Submit the task and yield what the node reports, until the task ends."""
        client = self._cluster.client
        cancellation, future = Event(self._inbox.token, client), self._submit(client)
        try:
            while not (done := future.done() or self._departed) or not self._inbox.news.empty():
                if not self.stopped and not done and cancelled():
                    self.stopped = True
                    _send(client, cancellation.set)
                    if not self._begun:  # it waits behind another task of the device
                        return
                yield from self._next()
            if self.pending:
                _raise_failure(future)
        finally:
            if future.done():
                _send(client, cancellation.clear)  # or the scheduler remembers it
            else:
                _send(client, cancellation.set)
                _send(client, future.cancel)  # a task that runs goes on, and hears of its cancellation

    def _submit(self, client: Client) -> Future[Any]:
        return client.submit(
            measure_here,
            encode(tuple(self._asked)),
            self._cluster.topic,
            self._inbox.token,
            key=f"gpuexplore-{self._inbox.token}",
            workers=[self._inbox.node.address],
            allow_other_workers=False,
            resources={self._device.id: 1},
            retries=0,
            pure=False,
        )

    def _next(self) -> Iterator[Case | Result]:
        try:
            news = self._inbox.news.get(timeout=TICK_S)
        except Empty:
            return
        if isinstance(news, Departure):
            self._departed = True
            if self.pending:
                raise DeviceLost(news.reason) if news.expected else _NodeCrashed(news.reason)
            return
        event = decode_event(news)
        if isinstance(event, Begun):
            self._begun = True
        elif isinstance(event, Case):
            self.at_work.append(self._asked[event])
            yield self._asked[event]
        elif isinstance(event, Result):
            yield self._with_name_asked_for(event)

    def _with_name_asked_for(self, result: Result) -> Result:
        case = self._asked[result.case]
        self.pending.pop(case, None)
        self.at_work = [earlier for earlier in self.at_work if earlier != case]
        return replace(result, case=case)


def _send(client: Client, request: Callable[[], object]) -> None:
    """Send a request to the scheduler without waiting for its answer; nothing where the connection is lost."""
    if client.loop is not None and client.status == "running":
        client.loop.add_callback(request)


def _raise_failure(future: Future[Any]) -> None:
    """Raise why a task that ended did not end well."""
    if future.status == "finished":
        return
    if future.status != "error":
        raise DeviceLost(f"the task is {future.status}: the Dask scheduler forgot it")
    error = future.exception()
    if isinstance(error, KilledWorker):
        raise _NodeCrashed(f"{error.last_worker.name} {LOST}")
    raise error if isinstance(error, GpuExploreError) else GpuExploreError(f"{type(error).__name__}: {error}")


def _end_all(cases: Sequence[Case], status: Status, reason: str, on_event: OnEvent) -> None:
    for case in cases:
        on_event(Result(case, status, reason))
