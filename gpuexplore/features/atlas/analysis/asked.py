"""What a person asks of the atlas, in the texts they type, on the command line and from Python."""

from collections.abc import Iterable, Sequence

from gpuexplore.analysis.prediction import calibrate
from gpuexplore.analysis.prediction.request import PredictionRequest, calls_named
from gpuexplore.analysis.what_if.summary import named_numbers
from gpuexplore.analysis.what_if.what_if import Known
from gpuexplore.devices import ACCELERATORS, target_named
from gpuexplore.dtypes import FORMATS, format_named
from gpuexplore.errors import InvalidInput
from gpuexplore.features.atlas.analysis.points import Point, citations, points
from gpuexplore.features.atlas.analysis.which_gpu import Choice, ranked, usual_devices, which_gpu
from gpuexplore.model import Device, Result, Shape
from gpuexplore.operations import operation_named
from gpuexplore.recorded import recorded_results
from gpuexplore.request import Request, shapes_of
from gpuexplore.shapes import split

EXAMPLE = "t4=0.35"  # of a price


def points_asked(operation: str | None, gpus: str = "", dtypes: str = "", source: str = "") -> tuple[Point, ...]:
    """Return the points that are asked for; an empty text stands for all.

    Args:
        operation: its name; None for every one.
        gpus: names or keys of the table of accelerators, separated by commas.
        dtypes: formats of FORMATS, separated by commas.
        source: the name of a collection, as `citations` has it.

    Raises:
        InvalidInput: names what cannot be used and what is accepted.
    """
    keys = [target_named(name, ()).id for name in _some("gpu", gpus, "names and keys of `specs`")]
    found = points(operation, keys, [format_named(name).name for name in _some("dtype", dtypes, FORMATS)])
    if not source:
        return found
    names = {citation.name.casefold(): citation.name for citation in citations(points())}
    if source.strip().casefold() not in names:
        raise InvalidInput.of("source", source, names.values())
    return tuple(point for point in found if point.citation.name == names[source.strip().casefold()])


def choices_asked(
    question: PredictionRequest,
    here: Iterable[Device],
    own: Sequence[Result] = (),
    *,
    by: str = "time",
    prices: str = "",
) -> tuple[Choice, ...]:
    """Return what one call takes on the GPUs that are asked for, from the best to the worst.

    Args:
        question: one shape, in one or several dtypes; no GPU stands for those that were measured or have a price.
        here: this machine's devices, a CPU with its ceilings.
        own: results of this machine, which come before all others.
        by: a key of ORDERS.
        prices: of an hour, by a device's key or id, like ``t4=0.35,l4=0.8``; they replace those of the lists.

    Raises:
        InvalidInput: names what cannot be used and what is accepted.
    """
    operation, known_here = operation_named(question.operation), tuple(here)
    dtypes = list(dict.fromkeys(format_named(name).name for name in _some("dtype", question.dtypes, FORMATS)))
    asked = _some("gpu", question.gpus, "names and keys of `specs`")
    devices = tuple(dict.fromkeys(target_named(name, known_here) for name in asked)) or usual_devices()
    names = {row.key for row in ACCELERATORS} | {device.id for device in devices}
    entered, problems = named_numbers("price", prices, names, EXAMPLE)
    if problems:
        raise InvalidInput("\n".join(problems))
    recorded = tuple(result for _, result in recorded_results())
    calls = calls_named(question.calls)
    known = Known(calibrate(own), measured=own, recorded=recorded, prices_per_hour=entered, calls=calls)
    shape = _shape(question)
    found = (which_gpu(operation.name, shape, dtype, devices=devices, known=known) for dtype in dtypes)
    return ranked((choice for choices in found for choice in choices), by)


def _some(what: str, text: str, accepted: Iterable[str] | str) -> tuple[str, ...]:
    """Return the values of a list; none for an empty text.

    Raises:
        InvalidInput: the text is not empty and holds no value.
    """
    words = split(text)
    if text and not words:
        raise InvalidInput.of(what, text, accepted)
    return words


def _shape(question: PredictionRequest) -> Shape:
    if not question.sizes and not question.shapes:
        raise InvalidInput("no size and no shape: give a size like 4096, or exact axes")
    operation = operation_named(question.operation)
    shapes = shapes_of(Request(operation.name, sizes=question.sizes, shapes=question.shapes), operation, measured=False)
    if len(shapes) > 1:
        raise InvalidInput(f"{len(shapes)} shapes: GPUs are ranked for one")
    return shapes[0]
