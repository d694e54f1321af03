"""The cost of an experiment, before anything is queued, and the refusal of what cannot end well.

A run takes the sum of its terms: the start of a worker that is not warm; for each case what its preparation and checks
take, and a few calls; beyond that sampling, until the budgets of all cases together are spent. So a case whose call
is slow costs what its calls cost, and every other one its budget.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from math import exp, log

from gpuexplore.analysis.utilization.utilization import flop_count
from gpuexplore.core import (
    DEFAULT_BUDGET_S,
    Case,
    Device,
    Experiment,
    InvalidInput,
    Result,
    format_bytes,
    format_seconds,
    median,
    once,
)
from gpuexplore.core.dtypes import dtype_named
from gpuexplore.measure.candidates.candidate import WAKING_CALL_S
from gpuexplore.measure.check.group import MIN_CALLS, element_count, limit_s, needed_bytes, work
from gpuexplore.operations import first_kernels, operation_named
from gpuexplore.recorded import recordings

START_S = 1.2  # start of a command and its worker process
START_OF_S: Mapping[str, float] = {"torch": 1.0, "numba": 0.5}  # added for loading each library
COMPILE_PRODUCT_S = 1.5  # compilation of a matmul kernel for one dtype, on its first use on this machine
USED_OF_MORE = 0.4  # share of the budget beyond the default that is used: medians are usually precise by then
OVERHEAD_S = 0.05  # of each case beyond its budget: the last checks and core probes
OVERHEAD_WITH_PAGES_S = 0.15  # the same where a web server and a browser use these cores, and rounds wait for pages
SPREAD = 1.5  # usual factor between estimate and actual duration
REPORTED_FROM_S = 10.0  # a run that takes longer is announced by the command line

_Kernel = tuple[str, str, str]  # operation, implementation and dtype


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """The cost of an experiment.

    Attributes:
        cases: points in all.
        runnable: points whose dtype has a meaning in the operation.
        unsupported: why the others have none, each reason once.
        bytes_largest: memory that the largest case takes on its device: its arrays, and what they are checked with.
        seconds: it will take about.
        seconds_low: it may end as soon, where medians are soon known well.
        seconds_high: it usually ends by then.
        flop_total: FLOPs of one call of every runnable case.
        slow: seconds of what takes most of it, by dtype and implementation, the slowest first.
    """

    cases: int
    runnable: int
    unsupported: tuple[str, ...]
    bytes_largest: int
    seconds: float
    seconds_low: float
    seconds_high: float
    flop_total: int
    slow: Mapping[tuple[str, str], float] = field(default_factory=dict, hash=False)

    @property
    def sentence(self) -> str:
        """About how long it takes, and what of it is slow."""
        return "; ".join([f"about {_rounded(self.seconds)} s", *self.slow_parts])

    @property
    def slow_parts(self) -> tuple[str, ...]:
        """A phrase for each slow part: `fp16 in numpy: 13 of 15 s`."""
        whole = _rounded(self.seconds)
        return tuple(
            f"{dtype} in {implementation}: {_rounded(seconds)} of {whole} s"
            for (dtype, implementation), seconds in self.slow.items()
        )


def estimate(
    experiment: Experiment,
    devices: Iterable[Device] = (),
    measured: Iterable[Result] | None = None,
    *,
    cold: bool = False,
) -> CostEstimate:
    """Return what `experiment` will cost.

    Args:
        devices: of this machine; of one that is not named nothing is known.
        measured: earlier results of these devices; kernels without one have to be compiled. None: they are not known.
        cold: whether workers have to be started, as for a command; those that are there have compiled what a first
            visit computes, and measure concurrently with the app's pages.
    """
    operation = operation_named(experiment.operation)
    cases = experiment.cases()
    reasons = {
        case: operation.unsupported(dtype_named(case.dtype))
        or operation.implementation_named(case.implementation).lacks_layout(case.options.layout)
        for case in cases
    }
    runnable = [case for case, reason in reasons.items() if reason is None]
    repeat = experiment.options.repeat
    known = {device.id: device for device in devices}
    earlier = tuple(measured or ())
    spent = _seconds_by_case(runnable, known, earlier, OVERHEAD_S if cold else OVERHEAD_WITH_PAGES_S)
    compiled = {_kernel(result.case) for result in earlier}
    if not cold:
        first = (kernel for device in known.values() for kernel in first_kernels(device))
        compiled |= {(each.name, implementation.name, dtype) for each, implementation, dtype in first}
    compiling_s = 0.0 if measured is None else _compiling_s(runnable, known, compiled)
    starts_s = _starts_s(experiment, runnable, known, cold=cold) + compiling_s
    seconds = starts_s + repeat * sum(max(pair) for pair in spent.values())
    return CostEstimate(
        cases=len(cases),
        runnable=len(runnable),
        unsupported=tuple(dict.fromkeys(reason for reason in reasons.values() if reason)),
        bytes_largest=max((_bytes_needed(case) for case in runnable), default=0),
        seconds=seconds,
        seconds_low=(starts_s + repeat * sum(least_s for least_s, _ in spent.values())) / SPREAD,
        seconds_high=seconds * SPREAD,
        flop_total=sum(flop_count(case) for case in runnable),
        slow=_slow_parts(spent, repeat, seconds - compiling_s),
    )


def _seconds_by_case(
    cases: Sequence[Case], known: Mapping[str, Device], measured: Sequence[Result], overhead_s: float
) -> dict[Case, tuple[float, float]]:
    """Return for each case what it takes at least, and its share of the budget."""
    times = {
        device_id: _call_times(
            known.get(device_id, Device(device_id, _kind(device_id), device_id)),
            [result for result in measured if result.case.device == device_id.rpartition("/")[2]],
        )
        for device_id in {case.device for case in cases}
    }
    simulated = {name for name, device in known.items() if device.is_simulated}
    return {
        case: (0.0, case.options.budget_s)
        if case.device in simulated
        else _seconds_of(case, times[case.device](case), overhead_s)
        for case in cases
    }


def _seconds_of(case: Case, call_s: float, overhead_s: float) -> tuple[float, float]:
    operation = operation_named(case.operation)
    sampled_s = min(case.options.budget_s, DEFAULT_BUDGET_S)
    sampled_s += USED_OF_MORE * (case.options.budget_s - sampled_s)
    phases = 1 + len(operation.phases)  # each phase is sampled like the whole
    preparation_s = 0.04  # inputs, checks and the first rounds of a small case
    checked_per_s = 2e7  # elements that are drawn, rounded and compared per second
    prepare_s = preparation_s + element_count(operation, case.shape) / checked_per_s
    reference_flop_per_s = 2e10  # rate of computing a reference
    prepare_s += flop_count(case) / reference_flop_per_s
    probe_s = 0.3  # duration of the probe that shows that a case takes too long
    if call_s * MIN_CALLS > limit_s(case):
        return preparation_s + probe_s, 0.0  # it is skipped
    slow_calls = 4  # calls of a case with slow calls
    if call_s >= WAKING_CALL_S:
        return prepare_s + slow_calls * call_s * phases, case.options.budget_s
    least_calls = 12  # minimum calls of a case: first, warm-up, a round, checks
    return prepare_s + least_calls * call_s * phases + overhead_s, sampled_s * phases + overhead_s


def _starts_s(experiment: Experiment, runnable: Sequence[Case], known: Mapping[str, Device], *, cold: bool) -> float:
    """Return the seconds until workers are there, with the libraries that are asked for."""
    devices = {case.device for case in runnable}
    loads = any(name not in known or not known[name].is_simulated for name in devices)
    operation = operation_named(experiment.operation)
    backends = {operation.implementation_named(case.implementation).backend for case in runnable}
    libraries_s = sum(
        seconds for name, seconds in START_OF_S.items() if any(used.startswith(name) for used in backends)
    )
    start_s = START_S + (libraries_s if loads else 0.0)
    fresh = experiment.options.repeat
    starts = fresh * len({case.group for case in runnable}) if fresh > 1 else len(devices) if cold else 0
    unmeasured = [known[name] for name in devices if name in known and known[name].kind == "cpu"]
    ceiling_s = 2.0  # the peaks of a CPU that was never measured
    return start_s * starts + sum(ceiling_s for device in unmeasured if not device.peaks and cold)


def _compiling_s(cases: Sequence[Case], known: Mapping[str, Device], compiled: Set[_Kernel]) -> float:
    """Return the seconds until the kernels are compiled that were never run on their device."""
    lacking = {_kernel(case) for case in cases if case.device in known and not known[case.device].is_simulated}
    costs: dict[str, list[float]] = defaultdict(list)
    for name, implementation, _ in lacking - compiled:
        operation = operation_named(name)
        backend = operation.implementation_named(implementation).backend
        costs[backend].append(COMPILE_PRODUCT_S if operation.products else 0.5)
    two_at_once = costs.pop("numba_cpu", [])  # as `measure.sample.compile_ahead` does
    others_s = sum(sum(costs[backend]) for backend in costs if backend.startswith("numba"))
    return others_s + max([sum(two_at_once) / 2, *two_at_once])


def _kernel(case: Case) -> _Kernel:
    return case.operation, case.implementation, case.dtype


def _slow_parts(spent: Mapping[Case, tuple[float, float]], repeat: int, run_s: float) -> dict[tuple[str, str], float]:
    parts: dict[tuple[str, str], float] = defaultdict(float)
    for case, pair in spent.items():
        parts[case.dtype, case.implementation] += repeat * max(pair)
    usual_s = sorted(parts.values())[len(parts) // 2] if parts else 0.0
    slow_share = 0.3  # share of the run above which one dtype and implementation is reported as slow,
    slow_times = 3  # if it also takes this many times the median of all
    least_s = max(1.0, slow_share * run_s, slow_times * usual_s)
    return {name: seconds for name, seconds in sorted(parts.items(), key=lambda part: -part[1]) if seconds > least_s}


def _rounded(seconds: float) -> str:
    return f"{seconds:.2g}" if seconds < 10 else f"{seconds:.0f}"


def _kind(device_id: str) -> str:
    return device_id.rpartition("/")[2].partition(":")[0]


def check_limits(experiment: Experiment, devices: Sequence[Device]) -> None:
    """Return when `experiment` may be queued for these devices of this machine.

    Raises:
        InvalidInput: too many cases or threads, too long, or too large for a device's memory; names both figures.
    """
    check_threads(experiment, devices)
    count = _case_count(experiment)
    most_cases = 2000
    if count > most_cases:
        raise InvalidInput(f"{count:,} cases are too many for one run (at most {most_cases:,}): choose fewer sizes")
    expected = estimate(experiment, devices)
    most_s = 3600.0
    if expected.seconds_high > most_s:
        raise InvalidInput(
            f"{expected.runnable} cases could take {format_seconds(expected.seconds_high)}, more than "
            f"{format_seconds(most_s)}: choose fewer sizes or a smaller budget"
        )
    for device in devices:
        if device.id in experiment.devices:
            _refuse_too_large(experiment, device)


def check_threads(experiment: Experiment, devices: Iterable[Device]) -> None:
    """Raise InvalidInput when more threads are asked for than the CPU of a device's host has cores."""
    hosts = {_host(device_id) for device_id in experiment.devices}
    cpus = [device for device in devices if device.kind == "cpu" and _host(device.id) in hosts]
    cores = min((device.cores for device in cpus if device.cores), default=None)
    threads = experiment.options.threads
    if cores and threads and threads > cores:
        raise InvalidInput.of("threads", threads, f"1 to {cores}, the cores of this CPU")


def _host(device_id: str) -> str:
    return device_id.rpartition("/")[0]


def _case_count(experiment: Experiment) -> int:
    """Return the number of cases without making them."""
    series = len(experiment.dtypes) * len(experiment.implementations) * len(experiment.devices)
    return len(experiment.shapes) * series


def _refuse_too_large(experiment: Experiment, device: Device) -> None:
    needed = estimate(replace(experiment, devices=(device.id,))).bytes_largest
    memory_share = 0.8  # the rest is for libraries, their workspaces and other processes
    if device.memory_bytes is None or needed <= memory_share * device.memory_bytes:
        return
    raise InvalidInput(
        f"the largest case needs {format_bytes(needed)}, more than {memory_share:.0%} of the "
        f"{format_bytes(device.memory_bytes)} of {device.id} ({device.name}): choose smaller sizes"
    )


def _bytes_needed(case: Case) -> int:
    itemsize_bytes = dtype_named(case.dtype).itemsize_bytes
    return needed_bytes(operation_named(case.operation), case.shape, itemsize_bytes, _kind(case.device))


# The time of a call before it is made: from this device's runs, else recorded ones, else its peaks. Results count where
# they were computed by the same arithmetic: bf16 that is widened to fp32 says nothing of bf16 units.


Key = tuple[str, str, str, str]  # operation, implementation, dtype of the arrays and of the arithmetic
Points = tuple[tuple[float, float], ...]  # work and seconds, ascending
LEAST_CALL_S = 2e-6


def _call_times(device: Device, measured: Iterable[Result] = ()) -> Callable[[Case], float]:
    """Return the function that estimates the seconds a call of a case takes on a device.

    Args:
        device: with its peaks and native formats.
        measured: results of any device that count for this one: its own.
    """
    own = _points(measured)

    def call_s(case: Case) -> float:
        key = _key(case, device)
        if found := own.get(key) or _recorded_for(device).get(key):
            return _at(found, _work(case))
        product = operation_named(case.operation).is_matrix_product
        kin = [
            _at(points, _work(case))
            for other, points in {**_recorded_for(device), **own}.items()
            if other[1:] == key[1:] and operation_named(other[0]).is_matrix_product == product
        ]
        return (median(kin) if kin else None) or _by_peak(case, device)

    return call_s


def _by_peak(case: Case, device: Device) -> float:
    implementation = operation_named(case.operation).implementation_named(case.implementation)
    peak = implementation.peak(device, case.dtype)
    unknown = 1e10 if device.kind == "cpu" else 1e12  # FLOP/s without a measured peak
    share_of_peak = 0.1  # of code without a measurement
    rate = share_of_peak * peak.flop_per_s if peak else unknown
    slow_flop_per_s = {("numpy", "fp16"): 5e8, ("torch", "fp16"): 3e9}  # without fp16 units, as recorded on Zen 3
    if device.kind == "cpu" and case.dtype not in device.native:
        rate = min(rate, slow_flop_per_s.get((case.implementation, case.dtype), rate))
    return max(LEAST_CALL_S, _work(case) / rate)


def _recorded_for(device: Device) -> Mapping[Key, Points]:
    return _recorded() if device.kind == "cpu" else {}


@once
def _recorded() -> dict[Key, Points]:
    """Return what the recordings of CPUs contain."""
    return _points(result for recording in recordings() for result in recording.results if result.case.device == "cpu")


def _points(results: Iterable[Result]) -> dict[Key, Points]:
    found: dict[Key, dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    for result in results:
        if result.measurement and result.environment and result.case.operation:
            key = _key(result.case, result.environment.device)
            found[key][_work(result.case)].append(result.measurement.median_s)
    return {key: tuple(sorted((at, median(times)) for at, times in by.items())) for key, by in found.items()}


def _key(case: Case, device: Device) -> Key:
    implementation = operation_named(case.operation).implementation_named(case.implementation)
    arithmetic, _ = implementation.computes_in(case.dtype, device)
    native = "native" if dtype_named(arithmetic).name in device.native else "emulated"
    return case.operation, case.implementation, case.dtype, f"{arithmetic} {native}"


def _work(case: Case) -> float:
    return float(work(operation_named(case.operation), case.shape))


def _at(points: Sequence[tuple[float, float]], wanted: float) -> float:
    """Return the seconds of `wanted` work: between neighbours along the line of logarithms, beyond the last by work."""
    above = next((index for index, (at, _) in enumerate(points) if at >= wanted), None)
    if above is None:
        at, seconds = points[-1]
        return seconds * wanted / at
    if above == 0:
        at, seconds = points[0]
        return max(min(seconds, LEAST_CALL_S), seconds * wanted / at)
    (low, low_s), (high, high_s) = points[above - 1 : above + 1]
    share = log(wanted / low) / log(high / low)
    return exp(log(low_s) + share * (log(high_s) - log(low_s)))
