"""Made-up results with round numbers, so that every figure can be checked by hand."""

from dataclasses import replace
from functools import cache

from gpuexplore.analysis.model import AnalyzedResult, Comparison, Context, CustomPeaks, RunAnalysis
from gpuexplore.analysis.prediction import calibrate
from gpuexplore.analysis.run.analyze import analyze, analyze_alone
from gpuexplore.core.model import (
    Bandwidth,
    Case,
    Device,
    Environment,
    Measurement,
    Options,
    Peak,
    Result,
    Shape,
    Status,
)
from gpuexplore.hardware.identity import device_key

NAME = "a made-up processor"
PEAKS = (
    Peak("fp32", "matrix", 1e12, "measured_ceiling", "a test"),
    Peak("bf16", "matrix", 4e12, "measured_ceiling", "a test"),
    Peak("fp32", "vector", 5e11, "datasheet", "a test"),
)


@cache
def calibration():
    """Return the calibration without results of this machine, made once for all tests."""
    return calibrate()


def device(*, device_id="cpu", cache_bytes=1000, peaks=PEAKS, bandwidth=1e11, memory_bytes=None):
    return Device(
        device_id,
        device_id.split(":")[0],
        NAME,
        cache_bytes=cache_bytes,
        memory_bytes=memory_bytes,
        peaks=peaks,
        bandwidth=Bandwidth(bandwidth, "measured_ceiling", "a test") if bandwidth else None,
    )


def case(*, size=100, shape=None, dtype="fp32", implementation="torch", on="cpu", operation="matmul", cache=None):
    axes = shape or Shape.of(m=size, k=size, n=size)
    return Case(operation, axes, dtype, implementation, on, Options(cache=cache))


def environment(on="cpu", **spec):
    versions = {"numpy": "2.4"}
    return Environment(device(device_id=on, **spec), "2026-01-02T00:00:00Z", "1", "abc", "3.12", "linux", versions)


def ok(median_s=1e-3, *, spread=0.01, count=9, flags=(), spec=None, **about):
    """Return a measured result whose samples lie evenly within `spread` around its median."""
    measured = case(**about)
    steps = [1 + spread * (2 * place / max(count - 1, 1) - 1) for place in range(count)]
    samples = tuple(median_s * step for step in steps)
    return Result(
        measured,
        Status.OK,
        measurement=Measurement(samples, first_call_s=1.0),
        flags=tuple(flags),
        environment=environment(measured.device, **(spec or {})),
    )


def with_contrasts(result, *contrasts):
    return replace(result, measurement=replace(result.measurement, contrasts=contrasts))


def with_phases(result, *phases):
    return replace(result, measurement=replace(result.measurement, phases=phases))


def failed(status=Status.SKIPPED, reason="too slow", **about):
    return Result(case(**about), status, reason, environment=environment())


def analyzed(*results, baseline=None, peak_kind=None, running=False, **known) -> RunAnalysis:
    """Return the analysis of results, compared as asked, with what is `known` beside them."""
    return analyze(results, Comparison(baseline, peak_kind), Context(**known), running=running)


def alone(result, **known) -> AnalyzedResult:
    """Return what follows from a result without those of its run."""
    return analyze_alone(result, Context(**known))


def custom(*peaks, bandwidth=None, on=None):
    """Return the peaks a user entered for one device: the made-up one, or the one that is given."""
    return {device_key(on or device()): CustomPeaks(peaks, bandwidth)}
