"""How many samples a result may carry: what is stored and sent to browsers stays below a megabyte."""

from dataclasses import replace
from typing import TypeVar

from gpuexplore.model import Contrast, Flag, Measurement, Phase, Result

Series = TypeVar("Series", Contrast, Phase)

MAX_SAMPLES = 40_000  # of one result, contrasts and phases included: below 1 MB as JSON, at 24 characters each


def with_fewer_samples(result: Result) -> Result:
    """Return `result` with the first samples of each series where all of them are too many, flagged `truncated`.

    The first and not every n-th, because the implementations of a group take their rounds in turns.
    """
    measurement = result.measurement
    if measurement is None or (count := _count(measurement)) <= MAX_SAMPLES:
        return result
    most = MAX_SAMPLES // (1 + len(measurement.contrasts) + len(measurement.phases))
    contrasts = tuple(_first(contrast, most) for contrast in measurement.contrasts)
    phases = tuple(_first(phase, most) for phase in measurement.phases)
    kept = replace(measurement, samples_s=measurement.samples_s[:most], contrasts=contrasts, phases=phases)
    flag = Flag("truncated", f"{_count(kept):,} of {count:,} samples are kept, the first ones")
    return replace(result, measurement=kept, flags=(*result.flags, flag))


def _count(measurement: Measurement) -> int:
    beside = [series.samples_s for series in measurement.contrasts] + [
        series.samples_s for series in measurement.phases
    ]
    return len(measurement.samples_s) + sum(map(len, beside))


def _first(series: Series, most: int) -> Series:
    return replace(series, samples_s=series.samples_s[:most])
