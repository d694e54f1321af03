"""What the atlas knows of a choice: measured points, predicted lines, and the prediction of the shape in question."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from gpuexplore.analysis.prediction import Calibration, Conditions, Prediction, calibrate, predict_each
from gpuexplore.devices import ACCELERATORS, as_device
from gpuexplore.features.atlas.analysis import Point, points
from gpuexplore.features.atlas.analysis.lines import case_of, line, shapes_between, work_of
from gpuexplore.features.atlas.chart import Series
from gpuexplore.features.atlas.ui.choice import NAMES, AtlasChoice
from gpuexplore.model import Shape
from gpuexplore.ui.shared import Shared

SIZES = 64  # of all lines together
FEWEST, MOST = 9, 25  # of one of them
REACH = (1e-3, 10.0)  # times the work of the shape, where nothing was measured
TABLE = {row.key: row for row in ACCELERATORS}


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """What follows from a choice: one object for all who made the same.

    Attributes:
        points: measured, of what is drawn.
        series: what is drawn, with its line.
        at: the work of the shape in question.
        predictions: of that shape, in the order of the series.
    """

    points: tuple[Point, ...]
    series: tuple[Series, ...]
    at: int
    predictions: tuple[Prediction, ...]


FACTS: Shared[Facts] = Shared(100)
CALIBRATIONS: Shared[Calibration] = Shared(1)


def facts_of(choice: AtlasChoice) -> Facts:
    """Return what is known of a choice."""
    key = choice.operation, choice.shown, choice.calls, choice.shape
    return FACTS.get(key, lambda: _facts(choice))


def calibration() -> Calibration:
    """Return what predictions of the atlas rest on: what comes with the app, and nothing of this machine."""
    return CALIBRATIONS.get((), calibrate)


def _facts(choice: AtlasChoice) -> Facts:
    found = [
        point
        for point in points(choice.operation, choice.gpus, choice.dtypes)
        if (point.dtype, point.spec_key) in choice.shown
    ]
    devices = {gpu: as_device(TABLE[gpu]) for gpu in choice.gpus}
    cases = {
        (dtype, gpu): [
            case_of(choice.operation, shape, dtype, devices[gpu])
            for shape in (choice.shape, *_shapes(choice, dtype, found))
        ]
        for dtype, gpu in choice.shown
    }
    asked = [(case, devices[gpu]) for (_, gpu), some in cases.items() for case in some]
    answers = iter(predict_each(asked, calibration(), Conditions(choice.calls)))  # at once, which is faster
    predictions = {shown: tuple(islice(answers, len(some))) for shown, some in cases.items()}
    series = tuple(
        Series(_name(choice, dtype, gpu), gpu, dtype, line(each[1:])) for (dtype, gpu), each in predictions.items()
    )
    at = work_of(choice.operation, choice.dtypes[0])(choice.shape)
    return Facts(tuple(found), series, at, tuple(each[0] for each in predictions.values()))


def _shapes(choice: AtlasChoice, dtype: str, found: Sequence[Point]) -> tuple[Shape, ...]:
    """Return the shapes of a line: as far as what was measured, else from a part to a multiple of the one asked for."""
    work = work_of(choice.operation, dtype)
    at, count = work(choice.shape), max(FEWEST, min(MOST, SIZES // len(choice.shown)))
    works = [at, *(point.work for point in found)] if found else [share * at for share in REACH]
    return shapes_between(choice.operation, choice.shape, dtype, (min(works), max(works)), count=count)


def _name(choice: AtlasChoice, dtype: str, gpu: str) -> str:
    """Return what a legend calls a series: its GPU, with the dtype where there are several."""
    return NAMES[gpu] if len(choice.dtypes) == 1 else f"{NAMES[gpu]} · {dtype}"
