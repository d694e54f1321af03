"""From the results of one case in several fresh processes to one: processes are what varies, not samples.

Samples of one process share where its memory and threads happen to lie, so a thousand of them tell no more of that
than one. The median of the pool is that of the processes' medians, and its interval comes from how these scatter:
see Kalibera and Jones, "Rigorous benchmarking in reasonable time", ISMM 2013.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from gpuexplore.core.model import Contrast, Flag, Measurement, Phase, Result, Status
from gpuexplore.core.statistics import median

Series = TypeVar("Series", Contrast, Phase)

MAX_SAMPLES = 40_000  # of one result, contrasts and phases included: below 1 MB as JSON, at 24 characters each


def pooled(results: Sequence[Result]) -> Result:
    """Return what the results of one case, each from another process, say together; one alone stays as it is.

    One that is not ok stands for all: what works in some processes only is not timed.
    """
    if len(results) == 1:
        return results[0]
    for number, result in enumerate(results, 1):
        if result.status is not Status.OK:
            where = f"in process {number} of {result.case.options.repeat}: " if number > 1 else ""
            return replace(result, reason=f"{where}{result.reason}")
    first, last = results[0], results[-1]
    environment = first.environment
    if environment is not None and last.environment is not None:
        environment = replace(environment, after=last.environment.after)
    return replace(
        first,
        measurement=_pooled([result.measurement for result in results if result.measurement]),
        accuracy=max(
            (result.accuracy for result in results if result.accuracy),
            key=lambda accuracy: accuracy.share,
            default=None,
        ),
        flags=_flags_of(results),
        environment=environment,
    )


def _pooled(measurements: Sequence[Measurement]) -> Measurement:
    """Return all samples in the order of the processes, and the typical first call; contrasts are the first one's."""
    most = MAX_SAMPLES // len(measurements)
    kept = [measurement.samples_s[:most] for measurement in measurements]
    return replace(
        measurements[0],
        samples_s=tuple(sample for samples_s in kept for sample in samples_s),
        first_call_s=median([first_s for each in measurements if (first_s := each.first_call_s) is not None]),
        processes=tuple(map(len, kept)),
        between_processes=None,
        between_ratios=None,
    )


def _flags_of(results: Sequence[Result]) -> tuple[Flag, ...]:
    """Return each flag that any process met, and where it did not apply to all, to how many."""
    met: dict[str, list[Flag]] = {}
    for result in results:
        for flag in result.flags:
            met.setdefault(flag.name, []).append(flag)
    return tuple(
        flags[0]
        if len(flags) == len(results)
        else replace(flags[0], evidence=f"in {len(flags)} of {len(results)} processes: {flags[0].evidence}")
        for flags in met.values()
    )


# How many samples a result may carry: what is stored and sent to browsers stays below a megabyte.


def with_fewer_samples(result: Result) -> Result:
    """Return `result` with the first samples of each series where all of them are too many, flagged `truncated`.

    The first and not every n-th, because rounds of the implementations of a group alternate.
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
    series = (*measurement.contrasts, *measurement.phases)
    return len(measurement.samples_s) + sum(len(each.samples_s) for each in series)


def _first(series: Series, most: int) -> Series:
    return replace(series, samples_s=series.samples_s[:most])
