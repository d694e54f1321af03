"""The interface of what measures cases, here or elsewhere, and the limits of a worker.

`local.py` is the engine of this machine: one warm process a device, one device at a time. `worker_process.py` starts
such a process, follows the journal of its task, and ends it where it hangs, fails or takes too much memory. A feature
may declare another engine.

From the results of one case in several fresh processes to one: processes are what varies, not samples.

Samples of one process share where its memory and threads happen to lie, so a thousand of them tell no more of that
than one. The median of the pool is that of the processes' medians, and its interval comes from how these scatter:
see Kalibera and Jones, "Rigorous benchmarking in reasonable time", ISMM 2013.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final, Literal, Protocol, TypeVar

from gpuexplore.activity import Activity, ActivityReport
from gpuexplore.core import (
    Case,
    Contrast,
    Device,
    Flag,
    InvalidInput,
    Measurement,
    Phase,
    Result,
    Status,
    median,
    read_bytes,
    read_seconds,
)
from gpuexplore.measure.check.group import MAX_BUDGET_MULTIPLE

PREEMPT: Final = "leave off"  # other runs go first: what has a provisional result is finished another time
IsCancelled = Callable[[], bool | Literal["leave off"]]


class Engine(Protocol):
    """An engine: measures cases on devices.

    Attributes:
        side_by_side: whether devices share no host, so that each can be measured on at the same time; otherwise one
            device is measured on at a time.
    """

    side_by_side: bool

    def warm(self, device: Device) -> Device:
        """Load what measuring on `device` needs; return it with the ceilings measured there.

        Raises:
            GpuExploreError: the device cannot be used; the text says why.
        """
        ...

    def measure(self, cases: Sequence[Case], on_event: Callable[[Case | Result], None], cancelled: IsCancelled) -> None:
        """Measure cases of one device.

        Args:
            on_event: gets a case when work on it starts, provisional results as they come, and exactly one final
                result for every case; what it raises ends the measurement.
            cancelled: asked all the while; once true, what was measured is final, and what was not ends CANCELLED;
                once PREEMPT, what was measured may end CANCELLED too, where it has a provisional result.

        Raises:
            GpuExploreError: the engine itself is broken; a failing case only gets a failing result.
        """
        ...

    def perform(
        self, activity: Activity, on_observation: Callable[[ActivityReport], None], cancelled: IsCancelled
    ) -> None:
        """Do what no sweep of an operation is, until it ends or is cancelled.

        Args:
            on_observation: gets what it reports.
            cancelled: asked all the while; once true, it ends soon.

        Raises:
            GpuExploreError: it failed; the text says why.
        """
        ...

    def close(self) -> None:
        """End every process this engine started."""
        ...


def batches_of(cases: Iterable[Case]) -> list[tuple[Case, ...]]:
    """Return `cases` as an engine takes them: all of a device at once, so that a first pass meets every one of them.

    Where fresh processes are asked for, group by group: a case has no result before the last process has ended.
    """
    by_device: dict[str, list[Case]] = {}
    for case in cases:
        by_device.setdefault(case.device, []).append(case)
    batches: list[tuple[Case, ...]] = []
    for found in by_device.values():
        if found[0].options.repeat == 1:
            batches.append(tuple(found))
        else:
            batches += (tuple(group) for _, group in groupby(found, key=lambda case: case.group))
    return batches


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """Limits of a worker, in seconds.

    Attributes:
        start_s: until its process takes up a task, and then until it takes up a case.
        build_s: to build a case and to call it once.
        per_budget: for the calls of a case, as multiple of its sampling budget.
        round_s: for a round of samples, whatever it is expected to take,
        per_round: and for each second that it is expected to take.
        grace_s: after a cancellation, until the process is killed.
        memory_bytes: that a worker may use; None: a share of what is free when it begins, less with code of users.
    """

    start_s: float = 180.0
    build_s: float = 60.0
    per_budget: float = MAX_BUDGET_MULTIPLE
    round_s: float = 5.0
    per_round: float = 10.0
    grace_s: float = 3.0
    memory_bytes: int | None = None

    def of_case(self, case: Case, expected_s: float | None) -> float:
        """Return the seconds that `case` may be at work before another one is taken up."""
        if expected_s is not None:
            return self.round_s + self.per_round * expected_s
        return self.build_s + self.per_budget * case.options.budget_s


def limits_typed(memory: str, time: str) -> WorkerLimits:
    """Return the limits of a worker as they were typed, e.g. ``4GB`` and ``10s``; empty: the default.

    Args:
        memory: of its process.
        time: until a case is built and was called once.

    Raises:
        InvalidInput: one of them is no size, or no time.
    """
    most, build_s = read_bytes(memory), read_seconds(time)
    if memory and not most:
        raise InvalidInput.of("memory limit", memory, "sizes like 500MB, 4GB or 8GiB")
    if time and not build_s:
        raise InvalidInput.of("time limit", time, "times like 500ms, 10s or 90s")
    limits = WorkerLimits(memory_bytes=most)
    return replace(limits, build_s=build_s) if build_s else limits


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
