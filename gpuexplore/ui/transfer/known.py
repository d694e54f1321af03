"""What is known of moving data here: the newest measurement on each device, and what follows for the choices."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from gpuexplore.activity import ActivityRun
from gpuexplore.analysis.prediction import Calibration, calibrate
from gpuexplore.analysis.transfer import compare, measured_path, path_to, readings_of, side_of
from gpuexplore.analysis.transfer.comparison import SizePoint
from gpuexplore.analysis.transfer.link import Path
from gpuexplore.measure.transfer.contract import Observed, activity_of
from gpuexplore.model import Device
from gpuexplore.serialization import decode
from gpuexplore.ui.activity.newest import newest_done
from gpuexplore.ui.known_results import Measured, measured_results
from gpuexplore.ui.shared import Shared
from gpuexplore.ui.transfer.choice import Asked

KNOWN_FOR = timedelta(days=30)
CALIBRATIONS: Shared[Calibration] = Shared(4)
COMPARISONS: Shared[tuple[SizePoint, ...]] = Shared(100)


@dataclass(frozen=True, slots=True)
class Known:
    """What the page draws.

    Attributes:
        cpu: what was observed on this CPU; nothing: its times are predicted.
        gpu: what was observed on the chosen GPU, where it is one of this machine.
        path: the way there.
        points: both at every size.
    """

    cpu: tuple[Observed, ...]
    gpu: tuple[Observed, ...]
    path: Path
    points: tuple[SizePoint, ...]


def observed_in(run: ActivityRun | None) -> tuple[Observed, ...]:
    """Return what an activity has observed so far."""
    return tuple(decode(Observed, dict(payload)) for payload in run.payloads) if run else ()


def known_of(asked: Asked) -> Known:
    """Return what is known and predicted for the choices."""
    cpu = _observed_on(asked.cpu, asked.operation)
    gpu = () if asked.gpu.is_hypothetical else _observed_on(asked.gpu, asked.operation)
    path = _path(asked, gpu)
    results = measured_results(asked.cpu)
    sides = side_of(asked.cpu, readings_of(cpu, "work")), side_of(asked.gpu, readings_of(gpu, "work"))
    points = COMPARISONS.get(
        (asked.operation, sides, path, results),
        lambda: compare(asked.operation, sides, path, _calibration(results)),
    )
    return Known(cpu, gpu, path, points)


def _observed_on(device: Device, operation: str) -> tuple[Observed, ...]:
    return observed_in(newest_done(activity_of(operation, device.id), KNOWN_FOR))


def _path(asked: Asked, gpu: Sequence[Observed]) -> Path:
    if gpu:
        return measured_path(gpu[0].link, readings_of(gpu, "moves"), asked.memory)
    return path_to(asked.gpu, asked.link, asked.memory)


def _calibration(results: Measured) -> Calibration:
    measured = tuple(result for _, result in reversed(results.found))
    return CALIBRATIONS.get(results, lambda: calibrate(measured))
