"""What a result can be held against: for every kind of peak the peak itself, or a sentence on why it is unknown.

MFU is a fraction, and whoever reads one must know its denominator. The usual one is the device's own peak; the others
answer other questions: what the clock that was held allowed, what was ever reached here, what others reached.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Generic, TypeVar

from gpuexplore.analysis.utilization.measured_ceiling import best_of, measured_bandwidth, measured_peak, same_units
from gpuexplore.analysis.utilization.published import best_published
from gpuexplore.analysis.utilization.utilization import (
    PEAK_KINDS,
    applicable_peak,
    arithmetic_of,
    device_of,
    held_clock_hz,
    known_bandwidth,
    own_peak,
)
from gpuexplore.devices import formula_peaks, printed_clock_hz
from gpuexplore.errors import InvalidInput
from gpuexplore.model import Bandwidth, Device, Peak, PeakKind, Result
from gpuexplore.units import format_si

P = TypeVar("P", Peak, Bandwidth)


@dataclass(frozen=True, slots=True)
class Against:
    """What results are to be held against.

    Attributes:
        kind: one kind of peak for all; None is the usual one: one's own where there is one, else the device's.
        own_peaks: peaks a user entered.
        own_bandwidth: the memory bandwidth a user entered.
        known: measured results, on these devices or others, that a measured ceiling may be taken from.
    """

    kind: PeakKind | None = None
    own_peaks: tuple[Peak, ...] = ()
    own_bandwidth: Bandwidth | None = None
    known: tuple[Result, ...] = ()


USUAL = Against()


def knowing(against: Against, results: Sequence[Result]) -> Against:
    """Return `against` with the best of `results` among what is known, so that they can be a measured ceiling."""
    return replace(against, known=best_of((*against.known, *results)))


@dataclass(frozen=True, slots=True)
class Denominator(Generic[P]):
    """One thing to hold a result against.

    Attributes:
        kind: what it is; `datasheet` where not even the usual one is known.
        peak: None is unknown.
        reason: why it is unknown, in a sentence without its full stop.
    """

    kind: PeakKind
    peak: P | None = None
    reason: str | None = None

    def __post_init__(self) -> None:
        if (self.peak is None) != bool(self.reason):
            raise InvalidInput("a denominator has a peak, or else a reason why it is unknown")


def denominators(result: Result, against: Against = USUAL) -> tuple[Denominator[Peak], ...]:
    """Return what this result's FLOP/s can be held against, one for every kind of peak."""
    return tuple(_found(kind, find(result, against)) for kind, find in COMPUTE.items())


def bandwidth_denominators(result: Result, against: Against = USUAL) -> tuple[Denominator[Bandwidth], ...]:
    """Return what this result's bytes/s can be held against, one for every kind of peak."""
    return tuple(_found(kind, find(result, against)) for kind, find in MEMORY.items())


def chosen(result: Result, against: Against = USUAL) -> Denominator[Peak]:
    """Return what this result's FLOP/s are held against."""
    if against.kind is not None:
        return _found(against.kind, COMPUTE[against.kind](result, against))
    peak = applicable_peak(result, against.own_peaks)
    return Denominator(peak.kind, peak) if peak else Denominator("datasheet", None, _no_peak(result))


def chosen_bandwidth(result: Result, against: Against = USUAL) -> Denominator[Bandwidth]:
    """Return what this result's bytes/s are held against."""
    if against.kind is not None:
        return _found(against.kind, MEMORY[against.kind](result, against))
    bandwidth = known_bandwidth(result, against.own_bandwidth)
    return Denominator(bandwidth.kind, bandwidth) if bandwidth else Denominator("datasheet", None, NO_BANDWIDTH)


def peak_kind(text: str) -> PeakKind | None:
    """Return the kind of peak that a user named; None for an empty text: the usual one.

    Raises:
        InvalidInput: no such kind; names those there are.
    """
    found = next((kind for kind in PEAK_KINDS if kind == text), None)
    if text and found is None:
        raise InvalidInput.of("kind of peak", text, PEAK_KINDS)
    return found


NO_DEVICE = "nobody recorded the device"
NO_BANDWIDTH = "no memory bandwidth is known for this device: enter one on the page Devices"


def _found(kind: PeakKind, found: P | str) -> Denominator[P]:
    return Denominator(kind, None, found) if isinstance(found, str) else Denominator(kind, found)


def _what(result: Result) -> str:
    dtype, unit = arithmetic_of(result)
    return f"{dtype} on {unit} units"


def _no_peak(result: Result) -> str:
    return f"no peak is known for {_what(result)} of this device: enter one on the page Devices"


def _datasheet(result: Result, device: Device, _: Against) -> str:
    if device.spec_key is None:
        return f"no datasheet in the table is of {device.name}"
    return f"the maker of {device.name} prints no figure for {_what(result)}"


def _formula(result: Result, device: Device, _: Against) -> Peak | str:
    found = formula_peaks(
        device.name,
        compute_capability=device.compute_capability,
        multiprocessors=device.cores,
        clock_hz=device.clock_hz,
    )
    its = next((one for one in found if (one.dtype, one.unit) == arithmetic_of(result)), None)
    return its or f"rate per clock, multiprocessors and clock are not all known for {_what(result)}"


def _held_clock(result: Result, device: Device, _: Against) -> Peak | str:
    peak = applicable_peak(result)
    if peak is None:
        return f"no peak is known for {_what(result)} that could be scaled"
    if peak.kind == "measured_ceiling":
        return "a measured ceiling was reached at whatever clock held then, so it cannot be scaled to another"
    held_hz, printed_hz = held_clock_hz(result), printed_clock_hz(device, peak)
    if held_hz is None or printed_hz is None:
        return f"the driver told no clock {'while this ran' if held_hz is None else 'that the peak is printed for'}"
    source = f"{peak.source}; at {_ghz(held_hz)}, read as the sampling ended, instead of {_ghz(printed_hz)}"
    return replace(peak, flop_per_s=peak.flop_per_s * held_hz / printed_hz, kind="held_clock", source=source)


def _ghz(clock_hz: float) -> str:
    return format_si(clock_hz, "Hz")


def _measured(result: Result, device: Device, against: Against) -> Peak | str:
    best = measured_peak(device, *arithmetic_of(result), against.known)
    return best or f"no large product in {_what(result)} was measured on this device: run one, of 2,048 and more"


def _published(result: Result, device: Device, _: Against) -> Peak | str:
    dtype, unit = arithmetic_of(result)
    if unit == "vector" and not same_units(device, dtype):
        return "published results are of products on matrix units, and this ran on vector units"
    best = best_published(device.spec_key, dtype)
    return replace(best, unit=unit) if best else f"nobody's products in {dtype} on this device are in our table"


def _own(result: Result, against: Against) -> Peak | str:
    found = own_peak(result, against.own_peaks)
    return (
        found or f"you entered none for {arithmetic_of(result)[0]}: the page Devices takes one, for runs on one device"
    )


def _measured_bandwidth(_: Result, device: Device, against: Against) -> Bandwidth | str:
    return measured_bandwidth(device, against.known) or (
        "nothing was measured on this device that moves four times its cache: run copy or triad, at a large size"
    )


def _own_bandwidth(_: Result, against: Against) -> Bandwidth | str:
    return against.own_bandwidth or "you entered none: the page Devices takes one, for runs on one device"


def _no(reason: str) -> Callable[[Result, Device, Against], str]:
    return lambda *_: reason


def _usual_or(
    kind: PeakKind, usual: Callable[[Result], P | None], find: Callable[[Result, Device, Against], P | str]
) -> Callable[[Result, Against], P | str]:
    """Return how to find a peak of `kind`: the device's usual one where it is of that kind, else what `find` says."""

    def found(result: Result, against: Against) -> P | str:
        device, its = device_of(result), usual(result)
        if device is None:
            return NO_DEVICE
        return its if its is not None and its.kind == kind else find(result, device, against)

    return found


COMPUTE: Mapping[PeakKind, Callable[[Result, Against], Peak | str]] = MappingProxyType(
    {
        "datasheet": _usual_or("datasheet", applicable_peak, _datasheet),
        "formula": _usual_or("formula", applicable_peak, _formula),
        "held_clock": _usual_or("held_clock", applicable_peak, _held_clock),
        "measured_ceiling": _usual_or("measured_ceiling", applicable_peak, _measured),
        "published": _usual_or("published", applicable_peak, _published),
        "own": _own,
    }
)
MEMORY: Mapping[PeakKind, Callable[[Result, Against], Bandwidth | str]] = MappingProxyType(
    {
        "datasheet": _usual_or(
            "datasheet", known_bandwidth, _no("no datasheet in the table states this device's bandwidth")
        ),
        "formula": _usual_or(
            "formula", known_bandwidth, _no("memory clock and bus width are taken only for devices in no table")
        ),
        "held_clock": _usual_or("held_clock", known_bandwidth, _no("no driver told the memory's clock while this ran")),
        "measured_ceiling": _usual_or("measured_ceiling", known_bandwidth, _measured_bandwidth),
        "published": _usual_or("published", known_bandwidth, _no("our table of published results holds products only")),
        "own": _own_bandwidth,
    }
)
