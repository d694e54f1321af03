"""Every kind of peak that a result can be compared with, one row each: what it is called, how it is found, its limits.

MFU is a fraction, and its reader must know its denominator. The default one is the device's own peak; the others
answer other questions: what the measured clock allowed, what was ever reached here, what others reached.
"""

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from math import log, sqrt
from typing import ClassVar, Literal

from gpuexplore.analysis.model import Context
from gpuexplore.analysis.utilization.utilization import (
    arithmetic_of,
    custom_peak,
    default_peak,
    device_of,
    measured_bandwidth,
    measured_clock_hz,
    measured_peak,
    same_units,
)
from gpuexplore.core import Bandwidth, Case, Device, Peak, PeakKind, Result, Shape, format_percent, format_si
from gpuexplore.hardware import ACCELERATORS, PEAK_FIELDS, SLOWED_FIELDS, formula_peaks, row_of, tensor_clock_share
from gpuexplore.measure.flags import FAR_ABOVE
from gpuexplore.operations import operation_named

# Results that others published: the best matrix products they reached on devices of the table, each with its link.


@dataclass(frozen=True, slots=True)
class PublishedResult:
    """One published measurement of a product; not by gpuexplore.

    Attributes:
        gpu: the device as its author calls it.
        spec_key: its row in the table of accelerators.
        dtype: a format of FORMATS.
        shape: of `matmul`.
        flop_per_s: the rate they report.
        source: the link.
        note: conditions.
    """

    gpu: str
    spec_key: str
    dtype: str
    shape: Shape
    flop_per_s: float
    source: str
    note: str
    origin: ClassVar[Literal["published"]] = "published"
    spread: ClassVar[float] = 0.0  # a standard deviation of the rate's logarithm: it is one rate

    @property
    def time_s(self) -> float:
        """Seconds of one product at that rate."""
        return operation_named("matmul").flop_count(self.shape) / self.flop_per_s

    @property
    def case(self) -> Case:
        """The case it stands for: a product of the vendor's library."""
        return Case("matmul", self.shape, self.dtype, operation_named("matmul").vendor_library.name, self.spec_key)


@dataclass(frozen=True, slots=True)
class NotedResult:
    """The rates of products that the notes of the table of accelerators mention as measured; shapes are not stated.

    Attributes:
        spec_key: the row of the table whose `source_url` and `notes` they come from.
        dtype: a format of FORMATS.
        low_flop_per_s: the lowest of them.
        high_flop_per_s: the highest.
    """

    spec_key: str
    dtype: str
    low_flop_per_s: float
    high_flop_per_s: float
    origin: ClassVar[Literal["noted"]] = "noted"

    @property
    def spread(self) -> float:
        """Standard deviation of the rate's logarithm."""
        return max(0.1, log(self.high_flop_per_s / self.low_flop_per_s) / 2)

    @property
    def source(self) -> str:
        """The link of its row."""
        return next(row.source_url for row in ACCELERATORS if row.key == self.spec_key)

    @property
    def case(self) -> Case:
        """The product it is taken for: a large one, as no shape is stated."""
        product = operation_named("matmul")
        return Case("matmul", product.shape_of_size(8192), self.dtype, product.vendor_library.name, self.spec_key)

    @property
    def time_s(self) -> float:
        """Seconds of that product at the middle of the noted rates."""
        flop_count = operation_named("matmul").flop_count(self.case.shape)
        return flop_count / sqrt(self.low_flop_per_s * self.high_flop_per_s)


def best_results(spec_key: str | None) -> tuple[PublishedResult, ...]:
    """Return the best published product in each dtype on this device."""
    known = [published for published in PUBLISHED if published.spec_key == spec_key]
    return tuple({result.dtype: result for result in sorted(known, key=lambda result: result.flop_per_s)}.values())


def best_published(spec_key: str | None, dtype: str) -> Peak | None:
    """Return the best published rate of products in `dtype` on this device as a peak; None where there is none."""
    best = next((result for result in best_results(spec_key) if result.dtype == dtype), None)
    if best is None:
        return None
    return Peak(dtype, "matrix", best.flop_per_s, "published", f"{best.shape}: {best.source} ({best.note})")


def _rows(name: str) -> list[dict[str, str]]:
    text = (files("gpuexplore.analysis") / "data" / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def _result(row: dict[str, str]) -> PublishedResult:
    m, n, k = map(int, row["shape"].split("x"))
    return PublishedResult(
        row["gpu"],
        row["spec_key"],
        row["dtype"],
        Shape.of(m=m, k=k, n=n),
        float(f"{row['tflops']}e12"),
        row["source"],
        row["note"],
    )


def _noted(row: dict[str, str]) -> NotedResult:
    low, high = (float(f"{row[name]}e12") for name in ("low_tflops", "high_tflops"))
    return NotedResult(row["spec_key"], row["dtype"], low, high)


PUBLISHED = tuple(_result(row) for row in _rows("published_matmul.cc-by-sa-4.0.csv"))
NOTED = tuple(_noted(row) for row in _rows("noted_matmul.csv"))


Basis = Literal["rated", "measured", "other"]
FindPeak = Callable[[Result, Device, Context], Peak | str]
FindBandwidth = Callable[[Result, Device, Context], Bandwidth | str]


@dataclass(frozen=True, slots=True)
class PeakSource:
    """One kind of peak.

    Attributes:
        kind: what links and the command line call it.
        label: of the compute peak, to stand after "the".
        bandwidth_label: of the memory bandwidth, to stand after "the".
        find_peak: returns the peak of a result's arithmetic on its device, or why it is unknown; asked where the
            device's own peak is of another kind.
        find_bandwidth: the same for memory.
        why_above: returns why a compute rate can be above this peak, given the fraction that was reached.
        why_above_bandwidth: why a memory rate can be, apart from caches.
        basis: `rated` for a clock, with which it scales; `measured` by loops; or neither.
    """

    kind: PeakKind
    label: str
    bandwidth_label: str
    find_peak: FindPeak
    find_bandwidth: FindBandwidth
    why_above: Callable[[Result, Peak, float], str]
    why_above_bandwidth: str = "the figure is too low"
    basis: Basis = "other"


def _arithmetic(result: Result) -> str:
    dtype, unit = arithmetic_of(result)
    return f"{dtype} on {unit} units"


def _always(reason: str) -> Callable[..., str]:
    return lambda *_: reason


def _datasheet(result: Result, device: Device, _: Context) -> str:
    if device.spec_key is None:
        return f"the table has no datasheet of {device.name}"
    return f"the datasheet of {device.name} lists no dense rate for {_arithmetic(result)}"


def _formula(result: Result, device: Device, _: Context) -> Peak | str:
    found = formula_peaks(
        device.name,
        compute_capability=device.compute_capability,
        multiprocessors=device.cores,
        clock_hz=device.clock_hz,
    )
    peak = next((peak for peak in found if (peak.dtype, peak.unit) == arithmetic_of(result)), None)
    return peak or f"rate per clock, multiprocessors and clock are not all known for {_arithmetic(result)}"


def _measured_clock(result: Result, device: Device, _: Context) -> Peak | str:
    peak = default_peak(result)
    if peak is None:
        return f"no peak is known for {_arithmetic(result)} that could be scaled"
    if PEAK_SOURCES[peak.kind].basis != "rated":
        return "a measured peak belongs to the clock of its own measurement, so it cannot be scaled to another"
    measured_hz = measured_clock_hz(result)
    rated_hz = rated_clock_hz(device, peak)
    if measured_hz is None or rated_hz is None:
        return "the driver reported no clock " + ("while this ran" if measured_hz is None else "the peak is rated for")
    at = f"at {format_si(measured_hz, 'Hz')}, read at the end of sampling, instead of {format_si(rated_hz, 'Hz')}"
    return replace(
        peak, flop_per_s=peak.flop_per_s * measured_hz / rated_hz, kind="held_clock", source=f"{peak.source}; {at}"
    )


def _measured(result: Result, device: Device, context: Context) -> Peak | str:
    best = measured_peak(device, *arithmetic_of(result), context.earlier)
    return (
        best or f"no large matmul in {_arithmetic(result)} was measured on this device: run one of size 2,048 or more"
    )


def _measured_bandwidth(_: Result, device: Device, context: Context) -> Bandwidth | str:
    return measured_bandwidth(device, context.earlier) or (
        "no measurement on this device moves four times its cache size: run copy or triad at a large size"
    )


def _published(result: Result, device: Device, _: Context) -> Peak | str:
    dtype, unit = arithmetic_of(result)
    if unit == "vector" and not same_units(device, dtype):
        return "published results are matmuls on matrix units, but this ran on vector units"
    best = best_published(device.spec_key, dtype)
    return replace(best, unit=unit) if best else f"the table has no published matmul in {dtype} on this device"


def _custom(result: Result, device: Device, context: Context) -> Peak | str:
    dtype = arithmetic_of(result)[0]
    return custom_peak(result, context.custom(device).compute) or (
        f"none entered for {dtype} on {device.name}: add one on the page Devices"
    )


def _custom_bandwidth(_: Result, device: Device, context: Context) -> Bandwidth | str:
    return context.custom(device).bandwidth or f"none entered for {device.name}: add one on the page Devices"


def _above_rated(result: Result, peak: Peak, fraction: float) -> str:
    """Explain a peak that is rated for a clock, with the measured clock where it is known."""
    boost = measured_over_rated(result, peak)
    measured_hz = measured_clock_hz(result)
    if boost is None or measured_hz is None:
        if fraction > FAR_ABOVE:
            return "no device boosts so far past its rated clock, so the measurement or the peak is wrong"
        return "devices, GeForce cards above all, run faster than the clock their peak is rated for"
    measured = format_si(measured_hz, "Hz")
    rated = format_si(measured_hz / boost, "Hz")
    corrected = fraction / boost
    read_error = 1.03  # a clock moves while it is read
    if corrected <= read_error:
        return (
            f"it ran at {measured}, and the peak is rated for {rated}; "
            f"at the measured clock it is {format_percent(corrected)}"
        )
    return (
        f"the clock it ran at, {measured} instead of {rated}, does not explain it: the measurement or the peak is wrong"
    )


_ROWS = (
    PeakSource(
        "datasheet",
        "datasheet peak",
        "datasheet's memory bandwidth",
        _datasheet,
        _always("no datasheet in the table states this device's bandwidth"),
        _above_rated,
        "the measurement is wrong",
        basis="rated",
    ),
    PeakSource(
        "formula",
        "derived peak",
        "derived memory bandwidth",
        _formula,
        _always("derived from memory clock and bus width only where no datasheet states the bandwidth"),
        _above_rated,
        "the memory clock reported by the driver is too low",
        basis="rated",
    ),
    PeakSource(
        "held_clock",
        "peak at the measured clock",
        "memory bandwidth at the measured clock",
        _measured_clock,
        _always("the driver reported no memory clock while this ran"),
        _always("the clock was read once, at the end of sampling, and may have been higher before"),
    ),
    PeakSource(
        "measured_ceiling",
        "measured peak",
        "measured memory bandwidth",
        _measured,
        _measured_bandwidth,
        _always("a measured peak is the best that was measured before, and this is better"),
        "the measured peak is too low: it is the best that was measured before",
        basis="measured",
    ),
    PeakSource(
        "published",
        "best published result",
        "best published memory bandwidth",
        _published,
        _always("the table of published results has only matmuls"),
        _always("the published result is lower: another shape, another clock or an older library"),
    ),
    PeakSource(
        "own",
        "custom peak",
        "custom memory bandwidth",
        _custom,
        _custom_bandwidth,
        _always("the number you entered is below what this device does, so check it"),
        "the number you entered is too low",
    ),
)
PEAK_SOURCES: Mapping[PeakKind, PeakSource] = {row.kind: row for row in _ROWS}


# The clock a peak is rated for: what a rate at another clock is scaled from.


def rated_clock_hz(device: Device, peak: Peak) -> float | None:
    """Return the clock in Hz that a printed `peak` of `device` counts on; None where nothing states it.

    Matrix units of the largest GPUs are rated below the boost clock, and their peaks are printed for that clock.
    """
    if device.clock_hz is None:
        return None
    field = PEAK_FIELDS[peak.dtype, peak.unit]
    row = row_of(device)
    if row is None:
        return device.clock_hz * tensor_clock_share(device.compute_capability, device.name, field)
    return row.tensor_clock_hz or row.boost_clock_hz if field in SLOWED_FIELDS else row.boost_clock_hz


def measured_over_rated(result: Result, peak: Peak) -> float | None:
    """Return the measured clock over the one a printed `peak` is rated for; None where either is unknown."""
    device = device_of(result)
    measured_hz = measured_clock_hz(result)
    rated_hz = rated_clock_hz(device, peak) if device else None
    return measured_hz / rated_hz if measured_hz and rated_hz else None
