"""How many samples a result may carry: what is stored and sent to browsers stays below a megabyte."""

from dataclasses import replace

from gpuexplore.model import Contrast, Flag, Measurement, Result

MAX_SAMPLES = 40_000  # of one result, contrasts included: below 1 MB as JSON, at 24 characters each


def with_fewer_samples(result: Result) -> Result:
    """Return `result` with the first samples of each series where all of them are too many, flagged `truncated`.

    The first and not every n-th, because sample i of every implementation of a group comes from round i.
    """
    measurement = result.measurement
    if measurement is None or (count := _count(measurement)) <= MAX_SAMPLES:
        return result
    most = MAX_SAMPLES // (1 + len(measurement.contrasts))
    contrasts = tuple(_first(contrast, most) for contrast in measurement.contrasts)
    kept = replace(measurement, samples_s=measurement.samples_s[:most], contrasts=contrasts)
    flag = Flag("truncated", f"{_count(kept):,} of {count:,} samples are kept, the first ones")
    return replace(result, measurement=kept, flags=(*result.flags, flag))


def _count(measurement: Measurement) -> int:
    return len(measurement.samples_s) + sum(len(contrast.samples_s) for contrast in measurement.contrasts)


def _first(contrast: Contrast, most: int) -> Contrast:
    return replace(contrast, samples_s=contrast.samples_s[:most])
