"""What predictions are calibrated on: published results, recorded runs and this machine's own, as observations.

An observation is the natural logarithm of an efficiency: the ideal time of a case over the time it took. How much
cases share by being alike, and what is expected before anything was seen, are the tables below. They were chosen by
hand from the physics (a card with few watts for its peak holds a lower clock; kernels of one architecture are alike)
and are judged by `benchmarks/prediction.py`, which leaves each device out in turn.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import log, log2, sqrt
from types import MappingProxyType
from typing import Literal

from gpuexplore.analysis.prediction.arithmetic import Arithmetic, arithmetic, library_of
from gpuexplore.analysis.prediction.regression import Component, Features, Process, observe
from gpuexplore.analysis.prediction.terms import Ideal, Place, ideal, place_of
from gpuexplore.analysis.published import NOTED, PUBLISHED, NotedResult, PublishedResult
from gpuexplore.analysis.roofline import Bound
from gpuexplore.devices import ACCELERATORS, Accelerator, as_device
from gpuexplore.dtypes import DTYPES, format_named
from gpuexplore.model import Case, Device, Peak, Result
from gpuexplore.operations import operation_named

NOISE = 0.05  # of a published result, and of a median from one day to the next
UNSEARCHED_NOISE = 0.1  # of a shape on a GPU: published shapes are the best of a search, and others have less luck
NOTED_NOISE, NOTED_SIZE = 0.1, 8192  # of a result in the notes of the table, whose shape nobody states
DISTURBED_NOISE = 0.25  # of a measurement flagged noisy, contended or throttled
DISTURBED = frozenset({"noisy", "contended", "throttled"})
MOST_OBSERVATIONS = 200  # of one kind: more would cost seconds and tell little

Kind = tuple[Place, Bound, Literal["native", "narrow", "emulated", "unsupported", "kernel"]]
Origin = Literal["published", "noted", "recorded", "own"]


@dataclass(frozen=True, slots=True)
class Prior:
    """What is expected of a kind of case before anything like it was seen.

    Attributes:
        efficiency: share of the ideal that is reached.
        deviation: of its natural logarithm.
    """

    efficiency: float
    deviation: float


PRIORS: Mapping[Kind, Prior] = MappingProxyType(
    {
        ("gpu", "compute", "native"): Prior(0.8, 0.1),
        ("gpu", "compute", "narrow"): Prior(0.5, 0.3),  # 16 bits on vector units: P100 well, GTX 16 hardly at all
        ("gpu", "compute", "emulated"): Prior(0.5, 0.3),
        ("gpu", "compute", "kernel"): Prior(0.25, 0.8),
        ("gpu", "memory", "native"): Prior(0.85, 0.12),
        ("gpu", "memory", "emulated"): Prior(0.8, 0.2),
        ("gpu", "memory", "kernel"): Prior(0.7, 0.3),
        ("cpu", "compute", "native"): Prior(0.75, 0.3),
        ("cpu", "compute", "emulated"): Prior(0.3, 1.0),
        ("cpu", "memory", "native"): Prior(0.7, 0.4),
        ("cpu", "memory", "emulated"): Prior(0.5, 0.6),
        ("cpu", "cache", "native"): Prior(0.6, 0.7),
        ("cpu", "cache", "emulated"): Prior(0.4, 0.9),
    }
)
CALL = Prior(1.0, 0.5)  # the cost of a call: within a factor of 2.3 of the assumed one

_CPU = (
    Component(0.4, ("family", "implementation", "dtype")),
    Component(0.3, ("family", "implementation", "dtype"), (("log2_work", 4.0),)),
    Component(0.3, ("device", "family", "implementation", "dtype"), (("log2_work", 2.0),)),
    Component(0.15, ("device",)),
)
_GPU = (Component(0.1, ("family", "implementation")), Component(0.1, ("device",)))
COMPONENTS: Mapping[tuple[Place, Bound], tuple[Component, ...]] = MappingProxyType(
    {
        ("gpu", "compute"): (
            Component(0.12, ("vendor",)),
            Component(0.06, ("architecture",)),
            Component(0.12, ("rate_class",)),
            Component(0.08, ("device",)),
            Component(0.04, ("dtype",)),
            Component(0.15, (), (("log2_watts_per_peak", 1.0),)),
            Component(0.15, ("family", "implementation")),
            Component(0.25, (), (("log2_work", 6.0),)),
            Component(0.25, ("unit",)),
        ),
        ("gpu", "memory"): _GPU,
        ("gpu", "overhead"): _GPU,
        ("cpu", "compute"): _CPU,
        ("cpu", "memory"): _CPU,
        ("cpu", "cache"): _CPU,
        ("cpu", "overhead"): _CPU,
    }
)

OF_ITS_OWN: Mapping[str, tuple[Component, ...]] = MappingProxyType(
    {
        "narrow": (Component(1.0, ("rate_class",)),),
        "emulated": (Component(0.4, ("rate_class", "dtype")),),
    }
)


@dataclass(frozen=True, slots=True)
class Observation:
    """One measured efficiency.

    Attributes:
        label: for a reader: the device it was measured on.
        origin: who measured it.
        features: what it is like.
        value: natural logarithm of ideal / measured time.
        noise: standard deviation of that.
    """

    kind: Kind
    label: str
    origin: Origin
    features: Features = field(hash=False)
    value: float
    noise: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """Observations, and by kind the process that has seen them."""

    observations: Mapping[Kind, tuple[Observation, ...]] = field(hash=False)
    processes: dict[Kind, Process] = field(default_factory=dict, hash=False, compare=False)

    def seen(self, kind: Kind) -> tuple[Observation, ...]:
        """Return the observations of this kind."""
        return self.observations.get(kind, ())

    def process(self, kind: Kind) -> Process:
        """Return the process for this kind of case; it is made once."""
        if kind not in self.processes:
            found, expected = self.seen(kind), log(prior_of(kind).efficiency)
            values = [one.value - expected for one in found]
            noise = [one.noise for one in found]
            self.processes[kind] = observe(components_of(kind), [one.features for one in found], values, noise)
        return self.processes[kind]


def prior_of(kind: Kind) -> Prior:
    """Return what is expected of a kind of case."""
    return PRIORS.get(kind, CALL)


def components_of(kind: Kind) -> tuple[Component, ...]:
    """Return why cases of this kind are alike: first because of their kind."""
    return (Component(prior_of(kind).deviation), *COMPONENTS[kind[0], kind[1]], *OF_ITS_OWN.get(kind[2], ()))


def calibrate(observations: Iterable[Observation]) -> Calibration:
    """Return the calibration on `observations`, at most the last MOST_OBSERVATIONS of a kind."""
    by_kind: dict[Kind, list[Observation]] = defaultdict(list)
    for one in observations:
        by_kind[one.kind].append(one)
    return Calibration({kind: tuple(found[-MOST_OBSERVATIONS:]) for kind, found in by_kind.items()})


def kind_of(case: Case, device: Device, units: Arithmetic, best: Ideal) -> Kind:
    """Return the kind of case whose observations tell of this one."""
    implementation = operation_named(case.operation).implementation_named(case.implementation)
    if implementation.geometry:
        return (place_of(device), best.bound, "kernel")
    dtype, peak = format_named(case.dtype), units.peak
    narrow = units.support == "native" and dtype.bits < DTYPES[dtype.accumulate].bits
    on_vector_units = peak is not None and peak.unit == "vector" and best.bound == "compute"
    return (place_of(device), best.bound, "narrow" if narrow and on_vector_units else units.support)


def features_of(case: Case, device: Device, units: Arithmetic, best: Ideal) -> Features:
    """Return what a case on a device is like."""
    row = _row(device.spec_key)
    peak = units.peak
    watts = log2(row.power_w / peak.flop_per_s * 1e12) if row and row.power_w and peak else None
    return {
        "device": device.spec_key or device.name,
        "vendor": row.vendor if row else None,
        "architecture": row.architecture if row else None,
        "rate_class": row.rate_class if row else None,
        "unit": "matrix" if peak and _on_matrix_units(peak, device) else "vector",
        "dtype": case.dtype,
        "family": _family(case),
        "implementation": case.implementation,
        "log2_work": log2(best.work),
        "log2_watts_per_peak": watts,
    }


def _on_matrix_units(peak: Peak, device: Device) -> bool:
    """Return whether there are matrix units: a product's peak is else that of the vector units."""
    vector = device.peak(peak.dtype, "vector")
    return peak.unit == "matrix" and (vector is None or vector.flop_per_s < peak.flop_per_s)


def _family(case: Case) -> str:
    """Return what cases of one kernel have in common: a single product is the same to a library by whatever name."""
    operation = operation_named(case.operation)
    products = operation.products(case.shape) if operation.products else ()
    return "product" if len(products) == 1 and products[0].batch == 1 and products[0].n > 1 else operation.name


@cache
def _row(spec_key: str | None) -> Accelerator | None:
    return next((one for one in ACCELERATORS if one.key == spec_key), None)


def observation(
    case: Case, device: Device, time_s: float, *, noise: float = NOISE, origin: Origin = "own"
) -> Observation | None:
    """Return the efficiency of a case that took `time_s`; None where no ideal time is known."""
    units = arithmetic(case, device)
    best = ideal(case, device, units)
    if best is None or units.support == "unsupported":
        return None
    kind, features = kind_of(case, device, units, best), features_of(case, device, units, best)
    return Observation(kind, device.name, origin, features, log(best.time_s / time_s), noise)


def from_published(results: Sequence[PublishedResult] = PUBLISHED) -> tuple[Observation, ...]:
    """Return what published results tell, as calls of the vendor's library."""
    return tuple(one for result in results if (one := _published(result)) is not None)


def _published(one: PublishedResult) -> Observation | None:
    row = _row(one.spec_key)
    if row is None:
        return None
    return observation(published_case(one), as_device(row), one.time_s, origin="published")


def from_noted(results: Sequence[NotedResult] = NOTED) -> tuple[Observation, ...]:
    """Return what the notes of the table tell, as products of NOTED_SIZE: they state no shape."""
    return tuple(one for result in results if (one := _noted(result)) is not None)


def _noted(one: NotedResult) -> Observation | None:
    row = _row(one.spec_key)
    if row is None:
        return None
    noise = max(NOTED_NOISE, log(one.high_flop_per_s / one.low_flop_per_s) / 2)
    return observation(noted_case(one), as_device(row), noted_time_s(one), noise=noise, origin="noted")


def noted_case(one: NotedResult) -> Case:
    """Return the product a noted result is taken for."""
    shape = operation_named("matmul").shape_of_size(NOTED_SIZE)
    return Case("matmul", shape, one.dtype, library_of(operation_named("matmul")).name, one.spec_key)


def noted_time_s(one: NotedResult) -> float:
    """Return the seconds of that product at the middle of the noted rates."""
    flop_count = operation_named("matmul").flop_count(noted_case(one).shape)
    return flop_count / sqrt(one.low_flop_per_s * one.high_flop_per_s)


def published_case(one: PublishedResult) -> Case:
    """Return the case a published result stands for."""
    return Case("matmul", one.shape, one.dtype, library_of(operation_named("matmul")).name, one.spec_key)


def from_results(results: Iterable[Result], origin: Origin = "own") -> tuple[Observation, ...]:
    """Return what measured results tell; of a case measured several times, the last."""
    latest = {one.case: one for one in results if one.measurement and one.environment}
    found = (_result(one, origin) for one in latest.values())
    return tuple(one for one in found if one is not None)


def _result(result: Result, origin: Origin) -> Observation | None:
    if result.measurement is None or result.environment is None:
        return None
    disturbed = any(flag.name in DISTURBED for flag in result.flags)
    noise = DISTURBED_NOISE if disturbed else NOISE
    return observation(result.case, result.environment.device, result.measurement.median_s, noise=noise, origin=origin)
