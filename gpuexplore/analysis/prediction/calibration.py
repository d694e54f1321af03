"""Calibration of predictions: published results, recorded runs and this machine's own, as observations.

An observation is the natural logarithm of an efficiency, the ideal time of a case over the time it took, less what
was expected. `gpuexplore.analysis.prediction.priors` says what is expected and what makes cases alike. Of a library's
calls on GPUs it is the fitted time over the time it took: see `gpuexplore.analysis.prediction.gpu`.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import hypot, log, log2
from typing import Literal

from gpuexplore.analysis.prediction.calls import (
    Arithmetic,
    Conditions,
    Ideal,
    arithmetic,
    calls_of,
    conditions_of,
    ideal,
    processor_of,
)
from gpuexplore.analysis.prediction.gpu import Fitted, fitted
from gpuexplore.analysis.prediction.gpu.facts import GpuCall, facts_of, is_of_library, moves_only, published_call
from gpuexplore.analysis.prediction.priors import (
    LIBRARY,
    DeviceLikeness,
    Estimator,
    Features,
    Regime,
    components_of,
    likeliest,
    observe,
    partition,
)
from gpuexplore.analysis.utilization import (
    NOTED,
    PUBLISHED,
    NotedResult,
    PublishedResult,
    cache_mode,
    device_of,
    is_ranked,
    same_units,
)
from gpuexplore.core.dtypes import DTYPES, format_named
from gpuexplore.core.model import DISTURBED, Case, Device, Measurement, Result
from gpuexplore.hardware import device_key, is_namesake, row_of, same_device, table_device
from gpuexplore.operations import Product, operation_named
from gpuexplore.recorded.published import PublishedMeasurement

NOISE = 0.05  # of a published result, and of medians between days
UNSEARCHED_NOISE = 0.1  # of an arbitrary shape: published shapes are the best of a search, others fit tiles less well
DISTURBED_NOISE = 0.25  # of a measurement slowed down by other work or heat

ObservationSource = Literal["published", "noted", "recorded", "own"]


@dataclass(frozen=True, slots=True)
class ObservedEfficiency:
    """One measured efficiency.

    Attributes:
        device: what it was measured on.
        origin: who measured it.
        features: what it is like.
        value: natural logarithm of ideal / measured time, less what is expected of its regime.
        noise: standard deviation of that.
    """

    regime: Regime
    device: Device
    origin: ObservationSource
    features: Features = field(hash=False)
    value: float
    noise: float


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """Observations by partition, and the process of each partition, made when it is first asked.

    Each is equal to itself alone: to hash the devices again for each of its predictions took longer than to predict.
    """

    observations: Mapping[str, tuple[ObservedEfficiency, ...]]
    devices: tuple[Device, ...] = ()
    gpus: Fitted = field(default_factory=fitted)
    processes: dict[str, Estimator] = field(default_factory=dict)
    parts: dict[tuple[Device, ...], "Calibration"] = field(default_factory=dict)
    of_devices: dict[Device, "Calibration"] = field(default_factory=dict)
    keys: dict[Device, str] = field(default_factory=dict)
    measured: dict[str, frozenset[str]] = field(default_factory=dict)
    of_library: dict[str, Sequence[ObservedEfficiency]] = field(default_factory=dict)
    likenesses: dict[tuple[object, ...], DeviceLikeness] = field(default_factory=dict)

    def without_namesakes(self, device: Device) -> "Calibration":
        """Return the observations of `device`: none of other processors of its name, which are easily taken for it."""
        if device not in self.of_devices:
            self.of_devices[device] = self._part(device)
        return self.of_devices[device]

    def _part(self, device: Device) -> "Calibration":
        left = tuple(seen for seen in self.devices if not is_namesake(seen, device))
        if left == self.devices:
            return self
        if left not in self.parts:
            kept = (seen for some in self.observations.values() for seen in some if seen.device in left)
            self.parts[left] = calibrate(kept, self.gpus)
        return self.parts[left]

    def seen(self, regime: Regime) -> tuple[ObservedEfficiency, ...]:
        """Return the observations of this regime."""
        return self.observations.get(partition(regime), ())

    def device_key(self, device: Device) -> str:
        """Return what stands for a device among the features: the key of the first observed one that is the same."""
        if device not in self.keys:
            self.keys[device] = device_key(next((seen for seen in self.devices if same_device(seen, device)), device))
        return self.keys[device]

    def is_measured(self, device: Device, regime: Regime | None = None) -> bool:
        """Return whether an observation of this regime, or of any, was measured on the device itself."""
        name = "" if regime is None else partition(regime)
        if name not in self.measured:
            seen = self.devices if regime is None else dict.fromkeys(each.device for each in self.seen(regime))
            self.measured[name] = frozenset(map(self.device_key, seen))
        return self.device_key(device) in self.measured[name]

    def of_device(self, regime: Regime, features: Features, device: Device) -> Features:
        """Return what a case on a device is like, with the device: of a library, and how that differs from its kind."""
        key = self.device_key(device)
        if regime != LIBRARY:
            return {**features, "device": key}
        return self._likeness(key, features["author"], features["kernels"]).of({**features, "device": key})

    def _likeness(self, key: str, *alike: object) -> DeviceLikeness:
        """Return how calls on a device differ from their kind: of an author, and of some kernels alone."""
        if (key, *alike) not in self.likenesses:
            own = [
                seen
                for seen in self._of_library_on(key)
                if (seen.features["author"], seen.features["kernels"])[: len(alike)] == alike
            ]
            # of all kernels together: a slow kernel of a user says nothing of the device
            whole = self._likeness(key, alike[0]) if len(alike) > 1 else None
            found = likeliest(
                [{**each.features, "device": key} for each in own],
                [each.value for each in own],
                [each.noise for each in own],
                whole.shared if whole else None,
            )
            self.likenesses[key, *alike] = found if own or whole is None else whole
        return self.likenesses[key, *alike]

    def kinds_measured(self, device: Device) -> frozenset[str | float | None]:
        """Return the kinds of calls in which a library's calls were measured on the device itself."""
        return frozenset(seen.features["calls"] for seen in self._of_library_on(self.device_key(device)))

    def _of_library_on(self, key: str) -> Sequence[ObservedEfficiency]:
        if key not in self.of_library:
            self.of_library[key] = [seen for seen in self.seen(LIBRARY) if self.device_key(seen.device) == key]
        return self.of_library[key]

    def process(self, regime: Regime) -> Estimator:
        """Return the process that this kind of case belongs to."""
        name = partition(regime)
        found = self.seen(regime)
        if name not in self.processes:
            features = [self.of_device(regime, seen.features, seen.device) for seen in found]
            values = [seen.value for seen in found]
            noises = [seen.noise for seen in found]
            self.processes[name] = observe(components_of(regime), features, values, noises)
        return self.processes[name]


def calibrate(observations: Iterable[ObservedEfficiency], gpus: Fitted | None = None) -> Calibration:
    """Return the calibration on `observations`, at most the last MOST_OBSERVATIONS of a partition.

    Args:
        gpus: what was fitted to measurements of others on GPUs; None is what ships.
    """
    found: dict[str, list[ObservedEfficiency]] = defaultdict(list)
    devices: dict[Device, None] = {}
    for observation in observations:
        found[partition(observation.regime)].append(observation)
        devices[observation.device] = None
    most = 600  # observations of one partition: more would cost seconds and add little
    return Calibration({name: tuple(some[-most:]) for name, some in found.items()}, tuple(devices), gpus or fitted())


def regime_of(case: Case, device: Device, units: Arithmetic, best: Ideal) -> Regime:
    """Return the kind of case whose observations apply to this one."""
    implementation = operation_named(case.operation).implementation_named(case.implementation)
    if implementation.geometry:
        return Regime(processor_of(device), best.bound, "kernel")
    dtype = format_named(case.dtype)
    peak = units.peak
    narrow = units.support == "native" and dtype.bits < DTYPES[dtype.accumulate].bits
    on_vector_units = peak is not None and peak.unit == "vector" and best.bound == "compute"
    return Regime(processor_of(device), best.bound, "narrow" if narrow and on_vector_units else units.support)


def features_of(case: Case, device: Device, units: Arithmetic, best: Ideal) -> Features:
    """Return what a case on a device is like, all but which device that is: see `Calibration.device_key`."""
    row = row_of(device)
    peak = units.peak
    regime = regime_of(case, device, units, best)
    operation = operation_named(case.operation)
    flop_count = operation.flop_count(case.shape)
    watts = log2(row.power_w / peak.flop_per_s * 1e12) if row and row.power_w and peak else None
    return {
        "regime": "/".join(regime),
        "bound": regime.bound,
        "deviation": regime.deviation,
        "vendor": row.vendor if row else None,
        "architecture": row.architecture if row else None,
        "rate_class": row.rate_class if row else None,
        "unit": "vector" if peak is None or same_units(device, peak.dtype) else peak.unit,
        "dtype": case.dtype,
        "family": _family(case),
        "implementation": case.implementation,
        "log2_flops": log2(flop_count) if flop_count else None,
        "log2_bytes": log2(operation.byte_count(case.shape, format_named(case.dtype))),
        "log2_watts_per_peak": watts,
    }


def _family(case: Case) -> str:
    """Return what cases of one kernel have in common: a single product is the same to a library by whatever name."""
    operation = operation_named(case.operation)
    if operation.implementation_named(case.implementation).hand_written:
        return operation.name
    return "product" if _single_product(case) else operation.name


def _single_product(case: Case) -> Product | None:
    """Return the product of matrices that a case is, by whatever name; None: it is none, or more."""
    operation = operation_named(case.operation)
    products = operation.products(case.shape) if operation.products else ()
    return products[0] if len(products) == 1 and products[0].batch == 1 and products[0].n > 1 else None


def library_features(case: Case, deviation: float, facts: GpuCall) -> Features:
    """Return what a library's call on a GPU, estimated with a deviation, is like, all but which device that is."""
    operation = operation_named(case.operation)
    dtype = format_named(case.dtype)
    product = _single_product(case)
    implementation = operation.implementation_named(case.implementation)
    return {
        "regime": "/".join(LIBRARY),
        "deviation": deviation,
        "family": "product" if product else operation.name,
        "kernels": "product" if operation.is_matrix_product else operation.name,
        "author": "library" if implementation.calls_library else case.implementation,
        "dtype": f"{dtype.bits} bits" if moves_only(case) else case.dtype,
        "implementation": case.implementation,
        "shape": str(product or case.shape),
        "calls": facts.calls,
        **{f"position_{axis}": place for axis, place in enumerate(facts.position)},
    }


def _observation(
    case: Case, device: Device, time_s: float, *, noise: float = NOISE, origin: ObservationSource = "own"
) -> ObservedEfficiency | None:
    """Return the efficiency of a case that took `time_s`; None where no ideal time is known, or it was fitted to."""
    units = arithmetic(case, device)
    best = ideal(case, device, units)
    if best is None or units.support == "unsupported" or is_of_library(case, device, units):
        return None
    regime = regime_of(case, device, units, best)
    value = log(best.time_s / time_s / regime.efficiency)
    return ObservedEfficiency(regime, device, origin, features_of(case, device, units, best), value, noise)


def _of_library(
    call: tuple[Case, Device], time_s: float, conditions: Conditions, gpus: Fitted
) -> ObservedEfficiency | None:
    """Return how much faster a library's call was than it is fitted to be; None where it is no such call."""
    case, device = call
    units = arithmetic(case, device)
    if not is_of_library(case, device, units):
        return None
    facts = facts_of(case, device, units, conditions)
    estimate = gpus.estimate(facts)
    features = library_features(case, estimate.deviation, facts)
    return ObservedEfficiency(LIBRARY, device, "own", features, log(estimate.time_s / time_s), NOISE)


def from_measured(rows: Iterable[PublishedMeasurement], gpus: Fitted) -> tuple[ObservedEfficiency, ...]:
    """Return published measurements of a device as if they were results of one's own.

    Args:
        gpus: what was fitted without that device.
    """
    found = (_of_library(published_call(row), row.time_s, conditions_of(row), gpus) for row in rows)
    return tuple(observed for observed in found if observed is not None)


def from_published(
    results: Sequence[PublishedResult | NotedResult] = (*PUBLISHED, *NOTED),
) -> tuple[ObservedEfficiency, ...]:
    """Return the observations in published results and in notes of the table, as calls of the vendor's library."""
    found = (
        _observation(row.case, table_device(row.spec_key), row.time_s, noise=max(NOISE, row.spread), origin=row.origin)
        for row in results
    )
    return tuple(seen for seen in found if seen is not None)


def from_results(
    results: Iterable[Result], origin: ObservationSource = "own", gpus: Fitted | None = None
) -> tuple[ObservedEfficiency, ...]:
    """Return the observations in measured results; of a case measured several times, the last."""
    latest: dict[object, Result] = {}
    for result in results:
        if is_ranked(result) and (result.case.options.data, result.case.options.layout) == ("normal", "NN"):
            device = device_of(result)
            latest[result.case, device and device_key(device)] = result
    found = (_result(result, origin, gpus or fitted()) for result in latest.values())
    return tuple(observed for observed in found if observed is not None)


def _result(result: Result, origin: ObservationSource, gpus: Fitted) -> ObservedEfficiency | None:
    if result.measurement is None or result.environment is None:
        return None
    noise = hypot(NOISE, _own_noise(result.measurement))
    if any(flag.name in DISTURBED for flag in result.flags):
        noise = hypot(noise, DISTURBED_NOISE)
    device = result.environment.device
    known = _observation(result.case, device, result.measurement.median_s, noise=noise, origin=origin)
    if known is not None or device.kind == "cpu":
        return known
    case = replace(result.case, options=replace(result.case.options, cache=cache_mode(result)))
    known = _of_library((case, device), result.measurement.median_s, Conditions(calls_of(result)), gpus)
    return known and replace(known, origin=origin, noise=noise)


def _own_noise(measurement: Measurement) -> float:
    """Return the standard deviation of the logarithm of a median, by its interval."""
    if measurement.ci95_s is None:
        return DISTURBED_NOISE
    low, high = measurement.ci95_s
    deviations = 1.96  # on each side of a normal distribution
    return log(high / low) / (2 * deviations)
