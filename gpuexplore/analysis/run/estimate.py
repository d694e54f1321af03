"""What an experiment will cost, before anything is queued, and the refusal of what cannot end well.

Seconds are bounds, not a prediction: no case takes less than its overhead, and sampling stops when the
budget is spent. A first call that compiles can add seconds of its own.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from gpuexplore.analysis.utilization.rates import flop_count
from gpuexplore.dtypes import dtype_named
from gpuexplore.errors import InvalidInput
from gpuexplore.measure.check.guard import needed_bytes
from gpuexplore.model import Case, Device, Experiment
from gpuexplore.operations import operation_named
from gpuexplore.units import format_bytes, format_seconds

SECONDS_PER_CASE = 0.05  # inputs, the check and the warm-up of a small case
SECONDS_BESIDE_BUDGET = 0.15  # the same for a large one
SECONDS_TO_START = 3.0  # a fresh process, which loads the libraries it measures,
FEWEST_SECONDS_TO_START = 1.0  # at the best
MEMORY_SHARE = 0.8  # the rest is for libraries, their workspaces and other processes
MOST_CASES = 2000
MOST_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """The cost of an experiment.

    Attributes:
        cases: points in all.
        runnable: points whose dtype has a meaning in the operation.
        unsupported: why the others have none, each reason once.
        bytes_largest: memory that the largest case takes on its device: its arrays, and what they are checked with.
        seconds_low: it cannot end sooner.
        seconds_high: it usually ends by then; slow calls and compilation come on top.
        flop_total: FLOPs of one call of every runnable case.
    """

    cases: int
    runnable: int
    unsupported: tuple[str, ...]
    bytes_largest: int
    seconds_low: float
    seconds_high: float
    flop_total: int


def estimate(experiment: Experiment) -> CostEstimate:
    """Return what `experiment` will cost."""
    operation, cases = operation_named(experiment.operation), experiment.cases()
    reasons = {name: operation.unsupported(dtype_named(name)) for name in experiment.dtypes}
    runnable = [case for case in cases if reasons[case.dtype] is None]
    repeat = experiment.options.repeat
    starts = repeat * len({case.group for case in runnable}) if repeat > 1 else 0
    sampling_s = experiment.options.budget_s * (1 + len(operation.phases))  # each phase is sampled like the whole
    return CostEstimate(
        cases=len(cases),
        runnable=len(runnable),
        unsupported=tuple(dict.fromkeys(reason for reason in reasons.values() if reason)),
        bytes_largest=max((_bytes_needed(case) for case in runnable), default=0),
        seconds_low=repeat * len(runnable) * SECONDS_PER_CASE + starts * FEWEST_SECONDS_TO_START,
        seconds_high=repeat * len(runnable) * (sampling_s + SECONDS_BESIDE_BUDGET) + starts * SECONDS_TO_START,
        flop_total=sum(flop_count(case) for case in runnable),
    )


def check_limits(experiment: Experiment, devices: Sequence[Device]) -> None:
    """Return when `experiment` may be queued for these devices of this machine.

    Raises:
        InvalidInput: too many cases or threads, too long, or too large for a device's memory; names both figures.
    """
    check_threads(experiment, devices)
    count = case_count(experiment)
    if count > MOST_CASES:
        raise InvalidInput(f"{count:,} cases are more than one run may have ({MOST_CASES:,}): ask for fewer sizes")
    expected = estimate(experiment)
    if expected.seconds_high > MOST_SECONDS:
        raise InvalidInput(
            f"{expected.runnable} cases could take {format_seconds(expected.seconds_high)}, more than "
            f"{format_seconds(MOST_SECONDS)}: ask for fewer sizes or a smaller budget"
        )
    for device in devices:
        if device.id in experiment.devices:
            _refuse_too_large(experiment, device)


def check_threads(experiment: Experiment, devices: Iterable[Device]) -> None:
    """Raise InvalidInput when more threads are asked for than the CPU beside a device has cores."""
    hosts = {_host(device_id) for device_id in experiment.devices}
    cpus = [device for device in devices if device.kind == "cpu" and _host(device.id) in hosts]
    cores = min((device.cores for device in cpus if device.cores), default=None)
    threads = experiment.options.threads
    if cores and threads and threads > cores:
        raise InvalidInput.of("threads", threads, f"1 to {cores}, the cores of this CPU")


def _host(device_id: str) -> str:
    return device_id.rpartition("/")[0]


def case_count(experiment: Experiment) -> int:
    """Return the number of cases without making them."""
    series = len(experiment.dtypes) * len(experiment.implementations) * len(experiment.devices)
    return len(experiment.shapes) * series


def _refuse_too_large(experiment: Experiment, device: Device) -> None:
    needed = estimate(replace(experiment, devices=(device.id,))).bytes_largest
    if device.memory_bytes is None or needed <= MEMORY_SHARE * device.memory_bytes:
        return
    raise InvalidInput(
        f"the largest case needs {format_bytes(needed)}, more than {MEMORY_SHARE:.0%} of the "
        f"{format_bytes(device.memory_bytes)} of {device.id} ({device.name}): ask for smaller sizes"
    )


def _bytes_needed(case: Case) -> int:
    kind = case.device.rpartition("/")[2].partition(":")[0]
    return needed_bytes(operation_named(case.operation), case.shape, dtype_named(case.dtype).itemsize_bytes, kind)
