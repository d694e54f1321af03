"""Work for a device that is no sweep of an operation: a mistake next to the right way, a training, an error provoked.

It waits in the same queue as runs, for it needs the same devices; what it observes is kept apart from results, so that
no comparison, peak, history or chart of results ever reads it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite
from types import MappingProxyType
from typing import Any

from gpuexplore.core import RunState, check_known, once, require
from gpuexplore.registry import ActivityKind, features

Payload = Mapping[str, Any]
LONGEST_S = 600.0
DEVICE = "device"  # among the versions of a report: the key of what it was observed on, not only its id


@dataclass(frozen=True, slots=True)
class Activity:
    """An activity that a user requests.

    Attributes:
        kind: its name in `kinds()`.
        arguments: (name, value) pairs, as text.
        device: id of the one it needs.
        expected_s: device seconds it will take, which decide its position in the queue.
    """

    kind: str
    arguments: tuple[tuple[str, str], ...] = ()
    device: str = "cpu"
    expected_s: float = 5.0

    def __post_init__(self) -> None:
        require(
            isfinite(self.expected_s) and 0 < self.expected_s <= LONGEST_S,
            "expected seconds",
            self.expected_s,
            f"above 0, up to {LONGEST_S:g}",
        )

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices it needs."""
        return (self.device,)


@dataclass(frozen=True, slots=True)
class ActivityReport:
    """The report of an activity.

    Attributes:
        payload: JSON whose form its kind decides.
        versions: of the software that did it, by name, and under DEVICE the key of the processor.
    """

    payload: Payload
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ActivityRun:
    """An activity on its way through the queue; times are UTC in ISO 8601.

    Attributes:
        payloads: what was observed so far, in the order of arrival.
        versions: of the software that did it, by name; None before anything was observed.
        device_s: seconds that a device has worked for it.
    """

    id: str
    owner: str
    activity: Activity
    state: RunState
    payloads: tuple[Payload, ...] = ()
    versions: Mapping[str, str] | None = None
    reason: str | None = None
    supervisor: str | None = None
    device_s: float = 0.0
    created_utc: str | None = None
    started_utc: str | None = None
    finished_utc: str | None = None

    @property
    def active(self) -> bool:
        """True while it is queued or running."""
        return self.state in (RunState.QUEUED, RunState.RUNNING)

    @property
    def device_key(self) -> str | None:
        """Key of the device it was done on (`gpuexplore.hardware.identity.device_key`); None where it does not say."""
        return (self.versions or {}).get(DEVICE)

    @property
    def software(self) -> Mapping[str, str] | None:
        """Versions of the software that did it, by name; None where nothing was observed."""
        return self.versions and {name: version for name, version in self.versions.items() if name != DEVICE}

    @cached_property
    def arguments(self) -> Mapping[str, str]:
        """The arguments by name."""
        return MappingProxyType(dict(self.activity.arguments))


def of_kind(kind: str, arguments: Mapping[str, str], *, device: str = "cpu", expected_s: float = 5.0) -> Activity:
    """Return the activity of `kind` with `arguments`.

    Raises:
        InvalidInput: no such kind.
    """
    kind_named(kind)
    return Activity(kind, tuple(sorted(arguments.items())), device, expected_s)


@once
def kinds() -> Mapping[str, ActivityKind]:
    """Return every kind of activity by its name in the database."""
    return {name: kind for feature in features() for name, kind in feature.activities.items()}


def kind_named(name: str) -> ActivityKind:
    """Return the kind called `name`.

    Raises:
        InvalidInput: no such kind.
    """
    check_known("activity", name, kinds())
    return kinds()[name]
