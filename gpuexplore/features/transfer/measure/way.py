"""One way of moving data or of calling a library, built and ready to be timed in turns with others."""

from collections.abc import Callable
from dataclasses import dataclass

from gpuexplore.backends import load_backend
from gpuexplore.backends.timer import Call, Clock, HostTimer
from gpuexplore.dtypes import dtype_named
from gpuexplore.features.transfer.measure.contract import DTYPE, Reading
from gpuexplore.measure.candidates.candidate import Candidate
from gpuexplore.measure.candidates.driver_device import device_for
from gpuexplore.measure.candidates.failure import IncorrectOutput
from gpuexplore.model import Accuracy, Case, Device, Options, Shape

BUDGET_S = 0.3


@dataclass(frozen=True, slots=True)
class Way:
    """What is timed.

    Attributes:
        reading: what is known of it before it is timed.
        candidate: how it is called; its call returns when the data are there.
        is_right: whether the last call did what it should.
        calls: launches in one call of the candidate.
    """

    reading: Reading
    candidate: Candidate
    is_right: Callable[[], bool]
    calls: int = 1

    def check(self) -> None:
        """Compare what the call left with what it should be.

        Raises:
            IncorrectOutput: it is something else.
        """
        if not self.is_right():
            raise IncorrectOutput(f"{self.reading.name} left other numbers than it should", Accuracy(None, 0.0))


def case_of(name: str, device: Device, length: int) -> Case:
    """Return the case that a way is timed under; its caches are warm."""
    return Case("transfer", Shape.of(n=length), DTYPE, name, device.id, Options(cache="warm", budget_s=BUDGET_S))


def way(reading: Reading, run: Call, is_right: Callable[[], bool], *, device: Device, clock: Clock) -> Way:
    """Return a way that is timed by the host's clock, so that what the host does for it counts.

    Args:
        run: returns when the work is done.
    """
    library = load_backend(reading.library.replace("-", "_"))
    case = case_of(reading.name, device, max(1, reading.byte_count))
    candidate = Candidate(
        case, device_for(library, device), library, dtype_named(DTYPE), run, None, HostTimer(clock), None
    )
    return Way(reading, candidate, is_right)
