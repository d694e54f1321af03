"""Estimates, values with their intervals, and those of times, rates and ratios of results.

An interval is widened by what is known to have disturbed a result.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, hypot, isfinite, log, log1p

from gpuexplore.core import (
    SMALLEST_SAMPLE_WITH_INTERVAL,
    Flag,
    FlagName,
    InvalidInput,
    Measurement,
    Result,
    format_bytes,
    format_bytes_per_s,
    format_flop_per_s,
    format_interval,
    format_percent,
    format_ratio,
    format_seconds,
    format_si,
    interval_of_few,
    median,
    paired_ratios,
    require,
    widened,
)

# A value with its interval: the form of every quantity in a conclusion.


FORMATS: Mapping[str, Callable[[float], str]] = {
    "s": format_seconds,
    "times": format_ratio,
    "fraction": format_percent,
    "bytes": format_bytes,
    "bytes/s": format_bytes_per_s,
    "FLOP/s": format_flop_per_s,
    "relative error": lambda error: f"{error:.2g}".replace("e-0", "e-"),
}


@dataclass(frozen=True, slots=True)
class Doubt:
    """Something that a value is uncertain by.

    Attributes:
        name: ``samples``, ``processes``, or the flag of its cause.
        deviation: half width of its 95 % interval, in natural logarithms.
    """

    name: str
    deviation: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """One value with its 95 % interval.

    Attributes:
        value: the best guess.
        low, high: the ends of the interval, which includes `value`; None is unknown, both or neither.
        unit: ``s``, ``times``, ``fraction``, ``FLOP/s``, ...
        basis: what it rests on, in words.
        doubts: what makes the interval wide, the widest part first; empty where that is not known.
    """

    value: float
    low: float | None
    high: float | None
    unit: str
    basis: str
    doubts: tuple[Doubt, ...] = ()

    def __post_init__(self) -> None:
        require(isfinite(self.value), "value", self.value, "finite numbers")
        is_whole = (self.low is None) == (self.high is None)
        require(is_whole, "interval", (self.low, self.high), "two ends, or None and None")
        if self.low is not None and self.high is not None and not self.low <= self.value <= self.high:
            raise InvalidInput.of("interval", (self.low, self.high), f"ends around the value, {self.value}")

    @property
    def interval(self) -> tuple[float, float] | None:
        """Both ends; None is unknown."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def widest_doubt(self) -> Doubt | None:
        """The doubt that widens the interval most; None where that is not known."""
        return next(iter(self.doubts), None)

    @property
    def range(self) -> str:
        """The interval in words, e.g. ``1.9× to 2.4×``; one figure where both ends read alike."""
        if self.interval is None:
            return f"about {self.words(self.value)}"
        low, high = map(self.words, self.interval)
        return low if low == high else f"{low} to {high}"

    def words(self, value: float) -> str:
        """Return `value` with the unit of this one."""
        return FORMATS[self.unit](value) if self.unit in FORMATS else format_si(value, self.unit)

    def __str__(self) -> str:
        if self.interval is None:
            return f"about {self.words(self.value)}"
        return f"{self.words(self.value)} ({format_interval(self.interval, self.words)})"

    def scaled(self, factor: float, unit: str) -> "Estimate":
        """Return it times an exactly known positive `factor`, in another unit."""
        low, high = self.interval or (None, None)
        ends = (low and low * factor, high and high * factor)
        return replace(self, value=self.value * factor, low=ends[0], high=ends[1], unit=unit)

    def inverse(self, amount: float, unit: str) -> "Estimate":
        """Return how often it, which must be positive, goes into a known `amount`: a rate, from a time."""
        low, high = self.interval or (None, None)
        ends = (high and amount / high, low and amount / low)
        return replace(self, value=amount / self.value, low=ends[0], high=ends[1], unit=unit)


UNSIZED = log(1.3)
LEFT_IN_A_RATIO = 0.25  # share of a common disturbance left in a ratio of the same rounds: 4 % instead of 15 %

# from the size of a flag to the half width that it adds, in natural logarithms
WIDENS: Mapping[FlagName, Callable[[float], float]] = {
    "contended": log1p,  # CPU share of others: a call takes twice as long next to work that uses all of the CPU
    "drifted": log1p,  # excess duration of rounds on slow cores, times their share
    "throttled": log1p,  # excess duration at this clock compared with the full clock
    "noisy": lambda share: log1p(share / 2),  # of the interquartile range: half of it on each side
}

SAMPLES = "samples"
PROCESSES = "processes"


def time_of(result: Result) -> Estimate | None:
    """Return the seconds of a call, of one sample without an interval; None without a measurement."""
    measurement = result.measurement
    if measurement is None:
        return None
    processes = len(measurement.processes)
    basis = _counted(processes, "process") if processes > 1 else _counted(len(measurement.samples_s), "sample")
    values = measurement.process_medians_s if processes > 1 else measurement.samples_s
    between = 0.0 if processes > 1 else measurement.between_processes or 0.0
    doubts = (Doubt(PROCESSES, between), *doubts_of(result.flags))
    return _spread(measurement.median_s, _scatter(values, pooled=processes > 1), ("s", basis), doubts)


def rate_of(result: Result, amount: float, unit: str) -> Estimate | None:
    """Return `amount` of a call over its time, e.g. in FLOP/s; None without a measurement, or of nothing."""
    time = time_of(result)
    return time.inverse(amount, unit) if time and amount > 0 else None


def ratio_of(this: Result, other: Result, *, same_run: bool = True) -> Estimate | None:
    """Return how many times as long as `other` a call takes; None where one was not measured, or has one sample.

    Args:
        same_run: whether both were measured in one run: those of one group then share their rounds, or processes.
    """
    if (
        this.measurement is None
        or other.measurement is None
        or this.measurement.is_single
        or other.measurement.is_single
    ):
        return None
    if not (same_run and this.case.group == other.case.group):
        return quotient(time_of(this), time_of(other))
    return _paired_ratio(this.measurement, other.measurement, doubts_of_both(this.flags, other.flags))


def _paired_ratio(this: Measurement, other: Measurement, doubts: Sequence[Doubt] = ()) -> Estimate:
    """Return the ratio of the medians of two measurements that share their rounds, or their processes.

    Its interval is that of the ratios round by round, or process by process, which is free of drift that hits both.
    """
    ratios = ratios_by_round(this, other)
    pooled = _are_pooled(this, other)
    is_exact = pooled or this is other  # the ratios already contain the spread between processes, or it cancels
    between = 0.0 if is_exact else hypot(this.between_ratios or 0.0, other.between_ratios or 0.0)
    basis = _counted(len(ratios), "process" if pooled else "round")
    value = this.median_s / other.median_s
    return _spread(value, _scatter(ratios, pooled=pooled), ("times", basis), (Doubt(PROCESSES, between), *doubts))


def ratios_by_round(this: Measurement, other: Measurement) -> tuple[float, ...]:
    """Return how many times as long as the other one it took, in each process, or else in each round."""
    if _are_pooled(this, other):
        return paired_ratios(this.process_medians_s, other.process_medians_s)
    return paired_ratios(this.samples_s, other.samples_s, (this.per_round, other.per_round))


def quotient(this: Estimate | None, other: Estimate | None) -> Estimate | None:
    """Return the ratio of two independent positive estimates; its ends are unknown where one of theirs is."""
    if this is None or other is None:
        return None
    value = this.value / other.value
    basis = f"{this.basis} over {other.basis}"
    if this.interval is None or other.interval is None:
        return Estimate(value, None, None, "times", basis)
    below = hypot(log(this.value / this.interval[0]), log(other.interval[1] / other.value))
    above = hypot(log(this.interval[1] / this.value), log(other.value / other.interval[0]))
    ends = value * exp(-below), value * exp(above)
    both = (*this.doubts, *other.doubts)
    names = dict.fromkeys(doubt.name for doubt in both)
    sizes = {name: [doubt.deviation for doubt in both if doubt.name == name] for name in names}
    doubts = _ordered([Doubt(name, hypot(*found)) for name, found in sizes.items()])
    return Estimate(value, min(ends[0], value), max(ends[1], value), "times", basis, doubts)


def _scatter(values: Sequence[float], *, pooled: bool) -> tuple[float, float] | None:
    """Return the 95 % interval of the median of positive values; a careful one below six samples; None of one.

    Args:
        pooled: whether each value is that of a process, and not of a single sample.
    """
    found = interval_of_few(values)
    if found is None or pooled or len(values) >= SMALLEST_SAMPLE_WITH_INTERVAL:
        return found
    low, high = found
    middle = median(values)
    few = min(values)
    many = max(values)
    bounds = few / (many / few), many * (many / few)  # Student's t of three samples may be arbitrarily wide
    fewest = 3  # samples: with two, the bounds cover the median in 80 % of cases, not in 95 %
    most = bounds if len(values) >= fewest else found
    at_least = 1.1  # minimum width, for a few samples that agree by chance
    return min(max(low, most[0]), middle / at_least), max(min(high, most[1]), middle * at_least)


def _spread(
    value: float, sampled: tuple[float, float] | None, about: tuple[str, str], doubts: Sequence[Doubt]
) -> Estimate:
    """Return an estimate whose interval the doubts widen, each independent of the others; `about`: unit and basis."""
    if sampled is None:
        return Estimate(value, None, None, *about)
    interval = min(sampled[0], value), max(sampled[1], value)
    low, high = widened(interval, value, hypot(*(doubt.deviation for doubt in doubts)))
    all_doubts = (Doubt(SAMPLES, log(interval[1] / interval[0]) / 2), *doubts)
    return Estimate(value, min(low, value), max(high, value), *about, _ordered(all_doubts))


def _ordered(doubts: Sequence[Doubt]) -> tuple[Doubt, ...]:
    return tuple(sorted((doubt for doubt in doubts if doubt.deviation), key=lambda doubt: -doubt.deviation))


def _are_pooled(this: Measurement, other: Measurement) -> bool:
    return min(len(this.processes), len(other.processes)) > 1


def _counted(count: int, what: str) -> str:
    plural = "es" if what.endswith("s") else "s"
    return f"{count} {what}{plural if count > 1 else ''}"


# Widening of a time's interval by flags: by the size of the effect, as far as the flag states it.
#
# A time that nothing disturbed is known to what its samples and processes vary by; each flag adds an independent
# uncertainty. One of unknown size adds what was found to be enough: over 192 results in eight processes
# of a shared machine, the intervals of flagged results widened by 30 % covered the median of all in 92 %.


def doubts_of(flags: Sequence[Flag]) -> tuple[Doubt, ...]:
    """Return what flags add to the uncertainty of a time; those that say nothing about it are left out."""
    return tuple(
        Doubt(flag.name, UNSIZED if flag.size is None else min(WIDENS[flag.name](max(flag.size, 0.0)), log(3.0)))
        for flag in flags
        if flag.name in WIDENS
    )


def doubts_of_both(these: Sequence[Flag], others: Sequence[Flag]) -> tuple[Doubt, ...]:
    """Return what flags add to the uncertainty of a ratio of two results that were sampled in the same rounds.

    What hit both alike hardly shows in it, what hit one alone does. Noise shows in the ratios round by round, which its
    interval is made of already.
    """
    this, other = ({doubt.name: doubt.deviation for doubt in doubts_of(flags)} for flags in (these, others))
    found = []
    alone = log(2.0)  # waits that fill most of the rounds hit each library in its own way, also in the same rounds
    for name in dict.fromkeys((*this, *other)):
        less, more = sorted((this.get(name, 0.0), other.get(name, 0.0)))
        if name == "contended" and more > alone:
            found.append(Doubt(name, hypot(more, less)))
        elif name == "contended":
            found.append(Doubt(name, more - less + LEFT_IN_A_RATIO * less))
        else:
            found.append(Doubt(name, more * (LEFT_IN_A_RATIO if less or name == "noisy" else 1.0)))
    return tuple(found)
