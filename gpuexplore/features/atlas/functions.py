"""The atlas from Python: what GPUs were measured to do, and which of them suits a call."""

from collections.abc import Mapping

from gpuexplore.analysis.prediction.request import PredictionRequest
from gpuexplore.api import texts_of, warn_of_readings
from gpuexplore.core import Words, name_typed, require, text_typed
from gpuexplore.features.atlas.analysis.answers import Atlas, Ranking, choices_asked, points_asked
from gpuexplore.hardware import discover, ensure_ceiling
from gpuexplore.shapes import split


def atlas(operation: str | None = None, gpus: Words = (), dtypes: Words = (), source: str = "") -> Atlas:
    """Return what GPUs were measured to do: published by others, with their licences, and recorded by gpuexplore.

    Args:
        operation: a name that `gpuexplore list` prints; None for every one.
        gpus: names or keys of `specs`; none for every one.
        dtypes: fp8 among them; none for every one.
        source: only what this collection measured, by its name in `citations`.

    Raises:
        InvalidInput: something asked for does not exist; names it and what is accepted.
    """
    name = None if operation is None else name_typed("operation", operation)
    source = name_typed("source", source, empty=True)
    warn_of_readings(text_typed("gpus", gpus))
    return Atlas(points_asked(name, text_typed("gpus", gpus), text_typed("dtypes", dtypes), source))


def which_gpu(operation: str, *, by: str = "time", prices: Mapping[str, float] | None = None, **case: Words) -> Ranking:
    """Return GPUs for one call of `operation`, from the best to the worst: measured there, else predicted.

    Args:
        operation: a name that `gpuexplore list` prints.
        by: `time`, `energy` of a call, `memory` of the GPU or `price` of a call.
        prices: of an hour, by keys of `specs`, instead of those that come along, in US dollars.
        **case: `sizes` or `shapes`, of one call; `dtypes` (default: fp32); `gpus` (default: those that were measured or
            have a price); `calls` as of `predict`.

    Raises:
        InvalidInput: something asked for does not exist, or there are several shapes; names it and what is accepted.
        TypeError: an unknown argument.
    """
    texts = texts_of("which_gpu", ("sizes", "shapes", "dtypes", "gpus", "calls"), case)
    asked = PredictionRequest(name_typed("operation", operation), **{"dtypes": "fp32", "gpus": ""} | texts)
    require(isinstance(prices, Mapping | None), "prices", prices, "amounts by keys of `specs`")
    typed = ",".join(f"{key}={amount}" for key, amount in (prices or {}).items())
    here = [ensure_ceiling(device) for device in discover() if device.id in split(asked.gpus)]
    warn_of_readings(",".join((asked.gpus, *(prices or {}))))
    return Ranking(choices_asked(asked, here, by=name_typed("by", by), prices=typed))
