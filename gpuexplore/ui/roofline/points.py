"""What a roofline shows: the roofs of a device, and the results of this server, of recordings and of others on it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from gpuexplore.analysis.model import Context
from gpuexplore.analysis.roofline.points import Point, place, published_points, without_flops
from gpuexplore.analysis.roofline.roofs import Roof, roofs
from gpuexplore.analysis.run.analyze import analyze_alone
from gpuexplore.analysis.utilization.utilization import device_of
from gpuexplore.devices.identity import OTHER_PROCESSOR, same_device, why_other_device
from gpuexplore.model import Device, Origin, Result
from gpuexplore.recorded import recorded_results, run_id
from gpuexplore.ui.known_results import MOST_RESULTS, NOTHING, Measured, measured_results
from gpuexplore.ui.roofline.choice import RooflineChoice
from gpuexplore.ui.session import owner
from gpuexplore.ui.shared import Shared

Found = tuple[tuple[str, Result], ...]


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """Everything that is drawn: one object for all who look at the same.

    Attributes:
        roofs: of the chosen dtype, and the bandwidths.
        points: newest of each case, of the chosen dtype and operation.
        measured: results of this device there are, whatever was chosen.
        without_flops: chosen results that compute nothing and so have no place.
        truncated: there are older results that are not shown.
        other_processors: recorded results of other processors of this name, counted by how they differ.
    """

    roofs: tuple[Roof, ...]
    points: tuple[Point, ...]
    measured: int
    without_flops: int
    truncated: bool
    other_processors: Mapping[str, int] = field(default_factory=dict)


VIEWS: Shared[View] = Shared(100)


def view_of(choice: RooflineChoice) -> View:
    """Return what the choices ask for."""
    everybody, live = measured_results(choice.device), _live(choice)
    runs = tuple(dict.fromkeys(run for run, _ in live.found))  # of whom they are does not matter to what is drawn
    key = (choice, everybody, runs, len(live.found))
    return VIEWS.get(key, lambda: _view(choice, everybody.found, live.found))


def _live(choice: RooflineChoice) -> Measured:
    if choice.runs == "none":
        return NOTHING
    return measured_results(choice.device, None if choice.runs == "all" else owner())


def _view(choice: RooflineChoice, everybody: Found, live: Found) -> View:
    recorded = _recorded(choice.device)
    shown: dict[Origin, Found] = {Origin.LIVE: live, Origin.RECORDED: recorded if choice.recorded else ()}
    all_roofs = roofs(
        choice.device, (result for _, result in everybody), (result for _, result in shown[Origin.RECORDED])
    )
    points = [point for origin, found in shown.items() for point in _placed(found, all_roofs, origin=origin)]
    points += published_points(choice.device, all_roofs)
    return View(
        roofs=tuple(roof for roof in all_roofs if roof.dtype is None or choice.dtype in (None, roof.dtype)),
        points=tuple(point for point in points if _wanted(point.dtype, point.operation, choice)),
        measured=len(everybody),
        without_flops=without_flops(
            result
            for found in shown.values()
            for _, result in found
            if _wanted(result.case.dtype, result.case.operation, choice)
        ),
        truncated=max(len(everybody), len(live)) == MOST_RESULTS,
        other_processors=_other_processors(choice.device) if choice.recorded else {},
    )


def _recorded(device: Device) -> Found:
    return tuple(
        (run_id(recording, result), result)
        for recording, result in recorded_results()
        if same_device(device_of(result), device)
    )


def _other_processors(device: Device) -> Mapping[str, int]:
    reasons = (why_other_device(device_of(result), device) for _, result in recorded_results())
    return Counter(reason for reason in reasons if reason and reason.startswith(OTHER_PROCESSOR))


def _placed(found: Found, all_roofs: tuple[Roof, ...], *, origin: Origin) -> list[Point]:
    """Return the newest of each case as a point; the newest come first."""
    newest = {result.case: (run, result) for run, result in reversed(found)}
    context = Context(origin=origin)
    placed = (place(analyze_alone(result, context), all_roofs, run=run) for run, result in newest.values())
    return [point for point in placed if point is not None]


def _wanted(dtype: str, operation: str, choice: RooflineChoice) -> bool:
    return choice.dtype in (None, dtype) and choice.operation in (None, operation)
