"""A request for a prediction, from the texts that are typed on pages, on the command line and in Python."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpuexplore.analysis.prediction import CALLS, USUAL_CALLS, Calls, Conditions, Prediction, calibrate, predict_each
from gpuexplore.core import Case, Device, InvalidInput, Result
from gpuexplore.core.dtypes import FORMATS, format_named
from gpuexplore.hardware import target_named
from gpuexplore.operations import Implementation, Operation, operation_named
from gpuexplore.request import Request, shapes_of
from gpuexplore.shapes import split

USUAL_DTYPES = "fp32,tf32,bf16,fp16,fp8"


CALLS_ALIASES: Mapping[Calls, tuple[str, ...]] = {
    "graph": ("graphs", "graphed"),
    "queued": ("queue", "stream", "async", "asynchronous", "backtoback"),
    "single": ("oneatatime", "oneshot", "sync", "synchronous"),
    "cold": ("kernel", "coldkernel", "profiler", "cupti"),
}


@dataclass(frozen=True, slots=True)
class PredictionRequest:
    """Texts as a person types them; several values of a field are separated by commas, shapes by semicolons.

    Attributes:
        operation: its name.
        gpus: driver names or keys of the table, or ids of this machine's devices.
        sizes: a list or a range, instead of `shapes`.
        shapes: exact axes, or presets.
        dtypes: formats of FORMATS.
        implementation: empty is the vendor's library.
        calls: how calls follow one another, keys of CALLS.
    """

    operation: str
    gpus: str
    sizes: str = ""
    shapes: str = ""
    dtypes: str = USUAL_DTYPES
    implementation: str = ""
    calls: str = USUAL_CALLS


def predictions(
    question: PredictionRequest, here: Iterable[Device], own: Sequence[Result] = ()
) -> tuple[Prediction, ...]:
    """Return the predictions, GPU by GPU, shape by shape, in the order of the dtypes and kinds of calls asked for.

    Args:
        here: this machine's devices, a CPU with its ceilings.
        own: results of this machine to calibrate on.

    Raises:
        InvalidInput: names what cannot be used and what is accepted.
    """
    operation = operation_named(question.operation)
    if not question.sizes and not question.shapes:
        raise InvalidInput("no size and no shape: give a size like 4096, or exact axes")
    shapes = shapes_of(Request(operation.name, sizes=question.sizes, shapes=question.shapes), operation, measured=False)
    dtypes = list(dict.fromkeys(format_named(name).name for name in split(question.dtypes)))
    name = question.implementation
    implementation = operation.implementation_named(name) if name else operation.vendor_library
    known = tuple(here)
    targets = tuple(dict.fromkeys(target_named(name, known) for name in split(question.gpus)))
    if not dtypes or not targets:
        raise InvalidInput(f"nothing to predict: give at least one gpu and one dtype of {', '.join(FORMATS)}")
    for device in targets:
        _check_runs_on(operation, implementation, device)
    calibration = calibrate(own)
    asked = [
        (Case(operation.name, shape, dtype, implementation.name, device.id), device)
        for device in targets
        for shape in shapes
        for dtype in dtypes
    ]
    kinds = dict.fromkeys(map(calls_named, split(question.calls) or ("",)))
    in_each = [predict_each(asked, calibration, Conditions(calls)) for calls in kinds]
    return tuple(prediction for of_case in zip(*in_each, strict=True) for prediction in of_case)


def calls_named(text: str) -> Calls:
    """Return the kind of calls of this name, or of one that people say: graphs, CUDA graph, one at a time.

    Raises:
        InvalidInput: there is none; names those that there are.
    """
    said = re.sub(r"[\s_-]+|^cuda", "", text.strip().casefold()).removesuffix("calls")
    found = next((calls for calls, names in CALLS_ALIASES.items() if said in (calls, *names)), None)
    if found is None:
        raise InvalidInput.of("calls", text, CALLS)
    return found


def _check_runs_on(operation: Operation, implementation: Implementation, device: Device) -> None:
    """Raise when `implementation` runs on another kind of device than `device` is."""
    if implementation.runs_on(device):
        return
    accepted = (other.name for other in operation.implementations if other.runs_on(device))
    raise InvalidInput.of(f"implementation of {operation.name} on {device.name}", implementation.name, accepted)
