"""What is known of a mistake on a device: nothing yet, that somebody waits for it, what was observed, or why it failed.

Everybody on this server sees the same observation, until it is made again. It is kept in memory alone: wrong numbers
are never stored.
"""

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from gpuexplore.errors import GpuExploreError
from gpuexplore.jobs.demonstration import run_here
from gpuexplore.mistakes.contract import Observation
from gpuexplore.model import Device


@dataclass(frozen=True, slots=True)
class Waiting:
    """It was asked for and is not done."""


@dataclass(frozen=True, slots=True)
class Failed:
    """It could not be made, and why."""

    reason: str


State = Waiting | Failed | Observation | None

_ONE_AT_A_TIME = ThreadPoolExecutor(1, "mistakes")  # two would disturb each other
_ASKED: dict[tuple[str, str], Future[Observation]] = {}


def observation_for(name: str, device: Device) -> State:
    """Return what is known of the mistake `name` on `device`; None where nobody asked."""
    asked = _ASKED.get((name, device.id))
    if asked is None:
        return None
    if not asked.done():
        return Waiting()
    error = asked.exception()
    if error is None:
        return asked.result()
    if isinstance(error, GpuExploreError):
        return Failed(str(error))
    raise error


def submit(name: str, device: Device) -> None:
    """Ask for the mistake `name` on `device`, unless somebody waits for it already."""
    if not isinstance(observation_for(name, device), Waiting):
        _ASKED[name, device.id] = _ONE_AT_A_TIME.submit(run_here, name, device)
