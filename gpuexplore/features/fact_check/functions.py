"""Stated times from Python: whether one is possible on a GPU."""

from numbers import Real

from gpuexplore.analysis.prediction.request import PredictionRequest
from gpuexplore.api import texts_of, warn_of_readings
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.typed_text import Words, name_typed
from gpuexplore.features.fact_check.analysis.possible import Possibility
from gpuexplore.features.fact_check.analysis.possible import is_possible as judged_time
from gpuexplore.hardware import discover, ensure_ceiling


def is_possible(
    operation: str, gpu: str, time: float | str | None = None, *, rate: float | str | None = None, **further: Words
) -> Possibility:
    """Return whether a stated time or rate is possible; true unless it is above a limit of the GPU.

    Args:
        operation: a name that `gpuexplore list` prints.
        gpu: a driver name or key of `specs`, or the id of a device of this machine.
        time: of one call: seconds, or text like ``90us``.
        rate: instead of a time: FLOP/s, or text like ``1.2PFLOP/s`` or ``3TB/s``.
        **further: `sizes` or `shapes`, of one case; `dtypes` (default: fp32), `implementation`, and `calls` as of
            `predict`.

    Raises:
        InvalidInput: something asked for does not exist, or there are several cases; names it and what is accepted.
        TypeError: an unknown argument.
    """
    texts = texts_of("is_possible", ("sizes", "shapes", "dtypes", "implementation", "calls"), further)
    asked = PredictionRequest(name_typed("operation", operation), name_typed("gpu", gpu), **{"dtypes": "fp32"} | texts)
    if isinstance(time, bool) or not isinstance(time, str | Real | None):
        raise InvalidInput.of("time", time, "seconds, or text with the unit: 90us")
    if isinstance(rate, bool) or not isinstance(rate, str | Real | None):
        raise InvalidInput.of("rate", rate, "FLOP/s, or text with the unit: 1.2PFLOP/s")
    here = [ensure_ceiling(device) if device.id == asked.gpus else device for device in discover()]
    warn_of_readings(asked.gpus)
    return judged_time(asked, time, here, rate=rate)
