"""The engine of a cluster: the cases of one device are one task on the node that has the device."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from queue import Empty
from typing import Any

from distributed import Client, Event, Future, KilledWorker

from gpuexplore.activity import Activity, ActivityReport
from gpuexplore.core import CANCELLED, Case, Device, DeviceLost, GpuExploreError, InvalidInput, Result, Status, encode
from gpuexplore.features.cluster.dask.cluster import LOST, Cluster, Inbox, NodeCrashed
from gpuexplore.features.cluster.dask.node import measure_here, perform_here
from gpuexplore.jobs.engines import IsCancelled
from gpuexplore.jobs.journal import Begun, decode_event
from gpuexplore.jobs.journal import Event as Report
from gpuexplore.measure.candidates.failure import describe_error

OnEvent = Callable[[Case | Result], None]


class DaskEngine:
    """Measures on a cluster's nodes, from several threads at once: each device takes one task at a time.

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
        """Measure cases of one device; see `Engine.measure`.

        Raises:
            DeviceLost: the node left; cases without a result were not measured, and can be later.
            GpuExploreError: the engine on the node is broken.
        """
        try:
            inbox = self._cluster.open_inbox(self._cluster.node_with(cases[0].device))
        except InvalidInput as error:
            _end_all(cases, Status.UNSUPPORTED, str(error), on_event)
            return
        asked = _Cases(inbox, cases)
        task = _Task(self._cluster, inbox, asked)
        try:
            with closing(task.reports(cancelled)) as reports:
                for event in asked.events(reports):
                    on_event(event)
        except NodeCrashed as crash:
            if asked.at_work:
                on_event(Result(asked.at_work[-1], Status.CRASHED, f"{crash} while this case was measured"))
            raise DeviceLost(str(crash)) from crash
        finally:
            self._cluster.close_inbox(inbox)
        for provisional in asked.pending.values():
            if task.stopped and provisional:
                on_event(replace(provisional, provisional=False))
        left = [case for case, provisional in asked.pending.items() if not (task.stopped and provisional)]
        status, reason = (
            (Status.CANCELLED, CANCELLED) if task.stopped else (Status.ERROR, "the node reported nothing on this case")
        )
        _end_all(left, status, reason, on_event)

    def perform(
        self, activity: Activity, on_observation: Callable[[ActivityReport], None], cancelled: IsCancelled
    ) -> None:
        """Do an activity on the node that has its device; see `Engine.perform`.

        Raises:
            InvalidInput: no node has it.
            DeviceLost: the node left; it can be done anew.
            GpuExploreError: it failed on the node.
        """
        inbox = self._cluster.open_inbox(self._cluster.node_with(activity.device))
        work = _Alone(replace(activity, device=inbox.node.devices[activity.device].id))
        try:
            with closing(_Task(self._cluster, inbox, work).reports(cancelled)) as reports:
                for event in reports:
                    if isinstance(event, ActivityReport):
                        on_observation(event)
        except NodeCrashed as crash:
            raise DeviceLost(str(crash)) from crash
        finally:
            self._cluster.close_inbox(inbox)

    def close(self) -> None:
        """Disconnect; nodes stay, for other supervisors."""
        self._cluster.close()


class _Alone:
    """An activity: what a node is asked for, as `_Cases` are.

    Attributes:
        device_id: as the node names it.
        function: what the node calls with `payload`, the topic and the token.
        is_pending: whether something of it is still to come.
    """

    function = staticmethod(perform_here)

    def __init__(self, activity: Activity) -> None:
        self.device_id = activity.device
        self.payload = encode(activity)
        self.is_pending = True


class _Cases:
    """Cases of one device.

    Attributes:
        pending: those without a final result, each with its provisional one.
        at_work: those of them that the node took up, the one at work last.
    """

    function = staticmethod(measure_here)

    def __init__(self, inbox: Inbox, cases: Sequence[Case]) -> None:
        self.pending: dict[Case, Result | None] = dict.fromkeys(cases)
        self.at_work: list[Case] = []
        self.device_id = inbox.node.devices[cases[0].device].id
        self._asked = {replace(case, device=self.device_id): case for case in cases}

    @property
    def payload(self) -> Any:
        return encode(tuple(self._asked))

    @property
    def is_pending(self) -> bool:
        return bool(self.pending)

    def events(self, reports: Iterable[Report]) -> Iterator[Case | Result]:
        """Yield what the node reports, with the names that were asked for."""
        for report in reports:
            if isinstance(report, Case):
                self.at_work.append(self._asked[report])
                yield self._asked[report]
            elif isinstance(report, Result):
                yield self._with_name_asked_for(report)

    def _with_name_asked_for(self, result: Result) -> Result:
        case = self._asked[result.case]
        named = replace(result, case=case)
        if named.provisional:
            self.pending[case] = named
            return named
        self.pending.pop(case, None)
        self.at_work = [earlier for earlier in self.at_work if earlier != case]
        return named


class _Task:
    """Work on its way.

    Attributes:
        stopped: whether it was cancelled.
    """

    def __init__(self, cluster: Cluster, inbox: Inbox, work: _Alone | _Cases) -> None:
        self.stopped = False
        self._cluster = cluster
        self._inbox = inbox
        self._work = work
        self._begun = self._departed = False

    def reports(self, cancelled: IsCancelled) -> Generator[Report]:
        """Submit the task and yield what the node reports, until the task ends."""
        client = self._cluster.client
        cancellation = Event(self._inbox.token, client)
        future = client.submit(
            self._work.function,
            self._work.payload,
            self._cluster.topic,
            self._inbox.token,
            key=f"gpuexplore-{self._inbox.token}",
            workers=[self._inbox.node.address],
            allow_other_workers=False,
            resources={self._work.device_id: 1},
            retries=0,
            pure=False,
        )
        try:
            while not (done := future.done() or self._departed) or not self._inbox.news.empty():
                if not self.stopped and not done and cancelled():
                    self.stopped = True
                    _send(client, cancellation.set)
                    if not self._begun:  # it waits behind another task of the device
                        return
                yield from self._next()
            if self._work.is_pending:
                _raise_failure(future)
        finally:
            if future.done():
                _send(client, cancellation.clear)  # or the scheduler remembers it
            else:
                _send(client, cancellation.set)
                _send(client, future.cancel)  # a task that runs goes on, and hears of its cancellation

    def _next(self) -> Iterator[Report]:
        try:
            news = self._inbox.news.get(timeout=0.02)
        except Empty:
            return
        if isinstance(news, DeviceLost | NodeCrashed):
            self._departed = True
            if self._work.is_pending:
                raise news
            return
        event = decode_event(news)
        if isinstance(event, Begun):
            self._begun = True
        else:
            yield event


def _send(client: Client, request: Callable[[], object]) -> None:
    """Send a request to the scheduler without waiting for its answer; nothing where the connection is lost."""
    if client.loop is not None and client.status == "running":
        client.loop.add_callback(request)


def _raise_failure(future: Future[Any]) -> None:
    """Raise why a task that ended did not end well."""
    if future.status == "finished":
        return
    if future.status != "error":
        raise DeviceLost(f"the task is {future.status}: the Dask scheduler no longer has it")
    error = future.exception()
    if isinstance(error, KilledWorker):
        raise NodeCrashed(f"{error.last_worker.name} {LOST}")
    raise error if isinstance(error, GpuExploreError) else GpuExploreError(describe_error(error))


def _end_all(cases: Sequence[Case], status: Status, reason: str, on_event: OnEvent) -> None:
    for case in cases:
        on_event(Result(case, status, reason))
