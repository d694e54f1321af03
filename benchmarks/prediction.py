"""How wrong predictions are, against simpler ways to predict, in one run: every device is left out in turn.

Published results, and those noted in the table of accelerators: a device's are predicted from those of all others.
Peers: the peak of the datasheet itself, and one efficiency for all, the median of the others. Recorded runs:
the results of one shape are predicted from those of all other shapes. It asserts nothing.

    python -m benchmarks.prediction [--json]
"""

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import median

from gpuexplore.analysis.prediction import INTERVAL, predict
from gpuexplore.analysis.prediction.arithmetic import arithmetic
from gpuexplore.analysis.prediction.calibration import (
    Calibration,
    Observation,
    calibrate,
    from_noted,
    from_published,
    from_results,
    noted_case,
    noted_time_s,
    published_case,
)
from gpuexplore.analysis.utilization.published import NOTED, PUBLISHED
from gpuexplore.analysis.utilization.rates import flop_count
from gpuexplore.devices import accelerator_named, as_device
from gpuexplore.model import Case, Device, Result, Shape
from gpuexplore.recorded import recorded_results
from gpuexplore.units import format_percent, format_seconds

GOOD, FAIR = 0.15, 0.3


@dataclass(frozen=True, slots=True)
class PublishedCase:
    """What others reached on a device of the table.

    Attributes:
        origin: `published` or `noted`.
    """

    origin: str
    case: Case
    took_s: float
    observation: Observation

    @property
    def key(self) -> str:
        """The device's row."""
        return self.case.device


@dataclass(frozen=True, slots=True)
class Trial:
    """One result and what was predicted for it without its device, or without its shape.

    Attributes:
        way: how it was predicted.
        origin: who measured it.
        took_s: what was published or measured, seconds.
        low_s: lower end of the interval; None for a way that states none.
    """

    way: str
    origin: str
    device: str
    dtype: str
    case: str
    took_s: float
    predicted_s: float
    low_s: float | None = None
    high_s: float | None = None

    @property
    def error(self) -> float:
        """Predicted over real time, less one."""
        return self.predicted_s / self.took_s - 1

    @property
    def held(self) -> bool | None:
        """Whether the interval held; None without one."""
        return None if self.low_s is None or self.high_s is None else self.low_s <= self.took_s <= self.high_s


def main() -> None:
    """Print each prediction with its error, and each way's errors side by side."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    trials = [*trials_of_others(), *recorded_trials()]
    if arguments.json:
        print(json.dumps([asdict(trial) for trial in trials], indent=1))
        return
    for trial in sorted(trials, key=lambda trial: abs(trial.error)):
        if trial.way == "gpuexplore":
            _print_trial(trial)
    print_ways(trials)


def trials_of_others() -> list[Trial]:
    """Return every published and noted result, predicted in each way from the results of other devices."""
    known = claims()
    return [way(one, [other for other in known if other.key != one.key]) for one in known for way in WAYS]


def claims() -> list[PublishedCase]:
    """Return what others reached, with its observation."""
    published = [
        PublishedCase("published", published_case(one), one.time_s, from_published([one])[0]) for one in PUBLISHED
    ]
    noted = [PublishedCase("noted", noted_case(one), noted_time_s(one), from_noted([one])[0]) for one in NOTED]
    return [*published, *noted]


def by_gpuexplore(claim: PublishedCase, others: Sequence[PublishedCase]) -> Trial:
    """Return our prediction."""
    calibration = calibrate(other.observation for other in others)
    found = predict(claim.case, device_of(claim), calibration, searched=claim.origin == "published")
    if found.time_s is None:
        raise SystemExit(f"no prediction for {claim}: {found.reason}")
    return _trial("gpuexplore", claim, found.time_s, (found.low_s, found.high_s))


def by_peak(claim: PublishedCase, _: Sequence[PublishedCase]) -> Trial:
    """Return the time at the datasheet's peak."""
    return _trial("the datasheet's peak", claim, time_at_peak(claim))


def by_one_efficiency(claim: PublishedCase, others: Sequence[PublishedCase]) -> Trial:
    """Return the time at the median efficiency of the others."""
    efficiency = median(time_at_peak(other) / other.took_s for other in others)
    return _trial("one efficiency for all", claim, time_at_peak(claim) / efficiency)


WAYS: tuple[Callable[[PublishedCase, Sequence[PublishedCase]], Trial], ...] = (
    by_gpuexplore,
    by_one_efficiency,
    by_peak,
)


def recorded_trials() -> list[Trial]:
    """Return every recorded result, predicted from the recorded results of other shapes."""
    results = [one for _, one in recorded_results() if one.measurement]
    groups = dict.fromkeys((result.case.operation, result.case.shape) for result in results)
    return [trial for group in groups for trial in _without(group, results)]


def _without(group: tuple[str, Shape], results: Sequence[Result]) -> list[Trial]:
    """Return the results of one shape, predicted from those of all others."""
    others = [result for result in results if (result.case.operation, result.case.shape) != group]
    calibration = calibrate(from_results(others, "recorded"))
    mine = [result for result in results if (result.case.operation, result.case.shape) == group]
    return [trial for one in mine if (trial := _recorded_trial(one, calibration))]


def _recorded_trial(result: Result, calibration: Calibration) -> Trial | None:
    if result.environment is None or result.measurement is None:
        return None
    found = predict(result.case, result.environment.device, calibration)
    if found.time_s is None:
        return None
    where = ("gpuexplore", "recorded", found.device.name, result.case.dtype)
    words = f"{result.case.operation} {result.case.shape} {result.case.implementation}"
    return Trial(*where, words, result.measurement.median_s, found.time_s, found.low_s, found.high_s)


def device_of(claim: PublishedCase) -> Device:
    """Return the device of the table a claim is about."""
    row = accelerator_named(claim.key)
    if row is None:
        raise SystemExit(f"accelerators.csv has no row {claim.key}")
    return as_device(row)


def time_at_peak(claim: PublishedCase) -> float:
    """Return seconds at the peak of the units that do the arithmetic."""
    units = arithmetic(claim.case, device_of(claim))
    if units.peak is None:
        raise SystemExit(f"no peak for {claim}")
    return flop_count(claim.case) / units.peak.flop_per_s


def _trial(
    way: str, claim: PublishedCase, predicted_s: float, interval: tuple[float | None, float | None] = (None, None)
) -> Trial:
    where = (way, claim.origin, device_of(claim).name, claim.case.dtype, str(claim.case.shape))
    return Trial(*where, claim.took_s, predicted_s, *interval)


def _print_trial(one: Trial) -> None:
    held = "within" if one.held else "outside"
    print(
        f"{one.device:28} {one.dtype:5} {one.case:24} took {format_seconds(one.took_s):>8}, predicted "
        f"{format_seconds(one.predicted_s):>8} ({one.error:+.1%}), {held} {format_seconds(one.low_s)} to "
        f"{format_seconds(one.high_s)}"
    )


def print_ways(trials: Sequence[Trial]) -> None:
    """Print a line for each way and origin: its errors, and how often its intervals held."""
    for origin, way in dict.fromkeys((trial.origin, trial.way) for trial in trials):
        mine = [trial for trial in trials if (trial.origin, trial.way) == (origin, way)]
        ours = [trial for trial in trials if (trial.origin, trial.way) == (origin, "gpuexplore")]
        print(f"{origin}, {way}: {summary(mine)}, {median_error(mine) / median_error(ours):.1f} x ours")


def summary(trials: Sequence[Trial]) -> str:
    """Return count, errors and how often the intervals held."""
    errors, held = [abs(trial.error) for trial in trials], [trial.held for trial in trials if trial.held is not None]
    within = [format_percent(sum(error <= limit for error in errors) / len(errors)) for limit in (GOOD, FAIR)]
    said = f"{len(trials)} results, median error {format_percent(median(errors))}, {within[0]} within 15 %, "
    intervals = f", intervals held {format_percent(sum(held) / len(held))} (claim {INTERVAL:.0%})" if held else ""
    return f"{said}{within[1]} within 30 %{intervals}"


def median_error(trials: Sequence[Trial]) -> float:
    """Return the median of the absolute errors."""
    return median(abs(trial.error) for trial in trials)


if __name__ == "__main__":
    main()
