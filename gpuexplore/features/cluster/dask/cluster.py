"""The connection to a scheduler: who is there, and what nodes tell, handed to the task it belongs to."""

import asyncio
import logging
import threading
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from queue import SimpleQueue
from typing import Any, Literal

from distributed import Client, Security, rpc
from distributed.comm.addressing import get_address_host
from distributed.comm.core import CommClosedError

import gpuexplore
from gpuexplore.core import Device, DeviceLost, GpuExploreError, InvalidInput, decode
from gpuexplore.features.cluster.dask.node import TOPIC as NODES

Role = Literal["client", "worker"]
ACCEPTED = "tls://HOST:PORT, and tcp://127.0.0.1:PORT on this machine"
CONNECT_S = 5.0

LOG = logging.getLogger(__name__)
LEFT = "left the cluster"
LOST = "was lost: killed, frozen or cut off"


@dataclass(frozen=True, slots=True)
class _Node:
    """A node as it announced itself; `devices` by the names runs ask for, e.g. `lab2/cuda:0`; none when it leaves."""

    address: str
    host: str
    version: str
    devices: Mapping[str, Device]

    @property
    def unusable_reason(self) -> str | None:
        """The reason why nothing is measured there; None where it is used."""
        if self.version == gpuexplore.__version__:
            return None
        return f"{self.host} has gpuexplore {self.version}, not {gpuexplore.__version__} as here: install that there"


class NodeCrashed(GpuExploreError):
    """The node ended unasked: killed, frozen or cut off: what it measured may be why."""


Departure = DeviceLost | NodeCrashed  # a node that was asked to leave is lost as a device is


@dataclass(frozen=True, slots=True)
class Inbox:
    """The incoming messages of one task: encoded events, and the departure of its node."""

    node: _Node
    token: str = field(default_factory=lambda: uuid.uuid4().hex)
    news: SimpleQueue[dict[str, Any] | Departure] = field(default_factory=SimpleQueue)


class Cluster:
    """Stays connected until it is closed; a scheduler that goes is waited for.

    Args:
        scheduler: its address.
        on_change: gets the devices of all nodes whenever one comes, changes or goes.

    Raises:
        InvalidInput: the address may not be used.
    """

    def __init__(self, scheduler: str, on_change: Callable[[tuple[Device, ...]], None]) -> None:
        self.scheduler = scheduler
        self.topic = f"gpuexplore-{uuid.uuid4().hex}"
        self._security = _security_for(scheduler, "client")
        self._on_change = on_change
        self._client: Client | None = None
        self._nodes: dict[str, _Node] = {}
        self._inboxes: dict[str, Inbox] = {}
        self._seen: set[str] = set()
        self._subscribed = threading.Event()
        self._closing = threading.Event()
        self._keeper = threading.Thread(target=self._stay_connected, name="dask-connection", daemon=True)
        self._keeper.start()

    @property
    def client(self) -> Client:
        """The connection.

        Raises:
            DeviceLost: there is none at present.
        """
        if self._client is None:
            raise DeviceLost(f"the Dask scheduler {self.scheduler} is gone")
        return self._client

    def devices(self) -> dict[str, Device]:
        """Return the devices of all nodes that may be used, each under its own name."""
        usable = (node for node in self._nodes.values() if node.unusable_reason is None)
        return {name: replace(device, id=name) for node in usable for name, device in node.devices.items()}

    def node_with(self, device_id: str) -> _Node:
        """Return the node that has a device.

        Raises:
            DeviceLost: it was there, and may come back.
            InvalidInput: no node ever had it, or the node is of another version.
        """
        node = next((node for node in self._nodes.values() if device_id in node.devices), None)
        if node is not None and node.unusable_reason:
            raise InvalidInput(node.unusable_reason)
        if node is None and device_id in self._seen:
            raise DeviceLost(f"{device_id} is not in the cluster now")
        if node is None:
            raise InvalidInput.of("device", device_id, self.devices())
        return node

    def open_inbox(self, node: _Node) -> Inbox:
        """Return where the events of a new task arrive."""
        inbox = Inbox(node)
        self._inboxes[inbox.token] = inbox
        if node.address not in self._nodes:  # it left before this process listened
            inbox.news.put(DeviceLost(f"{node.host} {LEFT}"))
        return inbox

    def close_inbox(self, inbox: Inbox) -> None:
        """Drop whatever still arrives for a task."""
        self._inboxes.pop(inbox.token, None)

    def close(self) -> None:
        """Disconnect."""
        self._closing.set()
        self._keeper.join()

    def _stay_connected(self) -> None:
        said = None
        while not self._closing.wait(0.2):
            if self._client is not None and self._client.status == "running":
                continue
            self._disconnect()
            try:
                client = Client(self.scheduler, security=self._security, timeout=CONNECT_S, set_as_default=False)
                try:
                    client.subscribe_topic("all", self._hear_of_departures)
                    client.subscribe_topic(NODES, self._hear_of_nodes)
                    client.subscribe_topic(self.topic, self._deliver)
                    self._subscribed.clear()
                    while not self._subscribed.wait(0.02):  # until this comes back, announcements may be missed
                        client.log_event(self.topic, {})
                    there = client.scheduler_info(n_workers=-1)["workers"]
                    announced = [
                        node for event in client.get_events(NODES) if (node := _node(event)) and node.address in there
                    ]
                    self._add(*{node.address: node for node in announced if node.address not in self._nodes}.values())
                except BaseException:
                    client.close(timeout=CONNECT_S)
                    raise
                LOG.info("Connected to the Dask scheduler %s", self.scheduler)
                self._client = client
                said = None
            except (OSError, GpuExploreError) as error:
                reason = _describe(error)
                if reason != said:
                    LOG.warning("The Dask scheduler %s cannot be reached: %s", self.scheduler, reason)
                said = reason
        self._disconnect()

    def _disconnect(self) -> None:
        client = self._client
        self._client = None
        gone = DeviceLost(f"the Dask scheduler {self.scheduler} is gone")
        for address in tuple(self._nodes):
            self._forget(address, gone)
        if client is not None:
            with suppress(OSError, TimeoutError):
                client.close(timeout=CONNECT_S)

    def _add(self, *nodes: _Node) -> None:
        for node in nodes:
            if node.unusable_reason:
                LOG.warning("A node is not used: %s", node.unusable_reason)
            self._seen.update(node.devices)
        self._nodes = {**self._nodes, **{node.address: node for node in nodes}}
        self._on_change(tuple(self.devices().values()))

    # What follows runs in the client's own thread, one call after the other.

    def _hear_of_nodes(self, event: tuple[float, Any]) -> None:
        node = _node(event)
        if node is not None and node.devices:
            self._add(node)
        elif node is not None:
            self._forget(node.address, DeviceLost(f"{node.host} {LEFT}"))

    def _hear_of_departures(self, event: tuple[float, Any]) -> None:
        message = _fields(event)
        node = self._nodes.get(str(message.get("worker")))
        if message.get("action") == "remove-worker" and node is not None:
            is_expected = bool(message["expected"])
            left = DeviceLost(f"{node.host} {LEFT}") if is_expected else NodeCrashed(f"{node.host} {LOST}")
            self._forget(node.address, left)

    def _forget(self, address: str, departure: Departure) -> None:
        if address not in self._nodes:
            return
        self._nodes = {known: node for known, node in self._nodes.items() if known != address}
        LOG.info("%s", departure)
        for inbox in tuple(self._inboxes.values()):
            if inbox.node.address == address:
                inbox.news.put(departure)
        self._on_change(tuple(self.devices().values()))

    def _deliver(self, event: tuple[float, Any]) -> None:
        self._subscribed.set()
        message = _fields(event)
        inbox = self._inboxes.get(str(message.get("token")))
        if inbox is not None:
            inbox.news.put(message["event"])


def _fields(event: tuple[float, Any]) -> Mapping[str, Any]:
    """Return what an event says; nothing where neither a node nor the scheduler sent it."""
    return event[1] if isinstance(event[1], Mapping) else {}


def _node(event: tuple[float, Any]) -> _Node | None:
    """Return the node that announced itself; None, and a line in the log, where that is unreadable."""
    try:
        message = event[1]
        host = str(message["host"])
        devices = [decode(Device, device) for device in message["devices"]]
        named = {f"{host}/{device.id}": device for device in devices}
        return _Node(str(message["worker"]), host, str(message["version"]), named)
    except (KeyError, TypeError, ValueError, GpuExploreError) as error:
        LOG.warning("A node's announcement cannot be read: %r", error)
        return None


# Which schedulers may be used: off this machine only by mutual TLS, for who reaches a scheduler runs code on nodes.
#
# Certificates are settings of Dask's own, `distributed.comm.tls`: in a file of ~/.config/dask, or in the environment.


def _security_for(scheduler: str, role: Role) -> Security:
    """Return the certificates to reach `scheduler` with.

    Raises:
        InvalidInput: `scheduler` is no address, or one that may not be used; or a certificate is not set.
    """
    encrypted = scheduler.startswith("tls://")
    try:
        host = get_address_host(scheduler)
    except ValueError as error:
        raise InvalidInput.of("scheduler", scheduler, ACCEPTED) from error
    if not encrypted and not (scheduler.startswith("tcp://") and _is_this_machine(host)):
        raise InvalidInput.of("scheduler", scheduler, ACCEPTED)
    security = Security(require_encryption=encrypted)
    missing = [name for name in _settings(role) if encrypted and not getattr(security, _settings(role)[name])]
    if missing:
        raise InvalidInput(f"{scheduler} needs certificates: set {', '.join(missing)} in Dask's configuration")
    return security


def check_certificates(scheduler: str, role: Role) -> None:
    """Return when `scheduler` and this machine accept each other, or there is no answer yet.

    Raises:
        GpuExploreError: their certificates are of different authorities.
    """
    security = _security_for(scheduler, role)

    async def ask() -> None:
        async with rpc(scheduler, connection_args=security.get_connection_args(role), timeout=CONNECT_S) as remote:
            await remote.identity()

    try:
        asyncio.run(ask())
    except CommClosedError as error:
        raise GpuExploreError(f"no connection to {scheduler}: {_describe(error)}") from error
    except OSError:  # not there yet: a connection waits for it
        return


def _describe(error: BaseException) -> str:
    """Return in one sentence why a scheduler could not be reached."""
    cause = error
    while earlier := cause.__cause__ or cause.__context__:
        cause = earlier
    if isinstance(error, CommClosedError):  # it answered, and one of the two hung up
        return f"is its certificate of the same authority as this one? ({cause})"
    return str(cause)


def _settings(role: Role) -> dict[str, str]:
    """Return the settings that TLS needs, each with the attribute of `Security` it becomes."""
    names = {f"distributed.comm.tls.{role}.{part}": f"tls_{role}_{part}" for part in ("cert", "key")}
    return {"distributed.comm.tls.ca-file": "tls_ca_file", **names}


def _is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
