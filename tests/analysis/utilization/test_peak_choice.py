"""What a result can be compared with: every kind has a peak with its source, or a sentence on why it is unknown."""

from dataclasses import replace
from typing import get_args

import pytest

from gpuexplore.analysis.model import Comparison, Context, PeakChoice
from gpuexplore.analysis.run.analyze import _with_measured_ceilings
from gpuexplore.analysis.utilization.best_results import (
    _peak_kind,
    known_bandwidths,
    known_peaks,
    reference_bandwidth,
    reference_peak,
)
from gpuexplore.analysis.utilization.peak_sources import _ROWS, PEAK_SOURCES
from gpuexplore.analysis.utilization.utilization import default_bandwidth, default_peak
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Bandwidth, Peak, PeakKind, Shape, Telemetry
from gpuexplore.hardware import ACCELERATORS, as_device
from gpuexplore.hardware.accelerators import rows_named
from tests.analysis.made import analyzed, custom, device, ok
from tests.hardware.processors import ZEN_4, ZEN_5, measured_on

KINDS = set(get_args(PeakKind))
CUSTOM = Peak("fp32", "matrix", 2e12, "own", "me")
BARE = {"peaks": (), "bandwidth": None}


def on_gpu(result, name="NVIDIA H100 80GB HBM3", *, held_hz=None, uuid="GPU-1"):
    """Return `result` as if it came from a GPU of the table."""
    (row, *_) = rows_named(name)
    device = replace(as_device(row), id="cuda:0", kind="cuda", name=name, uuid=uuid)
    return replace(result, environment=replace(result.environment, device=device, after=Telemetry(clock_hz=held_hz)))


def of(kind, choices):
    return next(choice for choice in choices if choice.kind == kind)


def measured_before(*earlier):
    """Return the context of an analysis with these earlier results."""
    return _with_measured_ceilings(Context(earlier=earlier), ())


@pytest.mark.parametrize("find", [known_peaks, known_bandwidths])
@pytest.mark.parametrize(
    "result",
    [ok(), ok(spec=BARE), replace(ok(), environment=None), on_gpu(ok()), ok(operation="copy", shape=Shape.of(n=8))],
)
def test_every_kind_has_a_peak_with_a_source_or_a_reason(find, result):
    choices = find(result, Context())
    assert {choice.kind for choice in choices} == KINDS
    assert len(choices) == len(KINDS)
    for choice in choices:
        assert choice.peak.kind == choice.kind if choice.peak else len(choice.reason) > 10
        assert choice.peak is None or choice.peak.source


def test_a_choice_has_its_peak_or_a_reason():
    with pytest.raises(InvalidInput, match="or the reason why"):
        PeakChoice("own")
    with pytest.raises(InvalidInput, match="or the reason why"):
        PeakChoice("own", CUSTOM, "both")


def test_every_kind_of_peak_has_exactly_one_source():
    assert sorted(source.kind for source in _ROWS) == sorted(get_args(PeakKind))
    assert all(PEAK_SOURCES[kind].kind == kind for kind in KINDS)


@pytest.mark.parametrize("kind", get_args(PeakKind))
def test_every_source_has_labels_and_says_how_a_rate_can_be_above_it_and_why_it_finds_none(kind):
    source, result = PEAK_SOURCES[kind], ok(dtype="fp64")
    assert source.label
    assert not source.label.startswith("the ")
    assert "memory bandwidth" in source.bandwidth_label
    assert len(source.why_above(ok(), CUSTOM, 1.1)) > 10
    assert len(source.why_above_bandwidth) > 10
    for found in (find(result, device(**BARE), Context()) for find in (source.find_peak, source.find_bandwidth)):
        assert isinstance(found, str)
        assert len(found) > 10


def test_labels_are_distinct_and_a_clock_scales_only_what_is_rated_for_one():
    assert len({source.label for source in PEAK_SOURCES.values()}) == len(KINDS)
    assert len({source.bandwidth_label for source in PEAK_SOURCES.values()}) == len(KINDS)

    assert {kind for kind, source in PEAK_SOURCES.items() if source.basis == "rated"} == {"datasheet", "formula"}
    assert {kind for kind, source in PEAK_SOURCES.items() if source.basis == "measured"} == {"measured_ceiling"}


@pytest.mark.parametrize(
    "result", [ok(), ok(spec=BARE), on_gpu(ok()), on_gpu(ok(dtype="bf16")), ok(implementation="numba-cuda")]
)
@pytest.mark.parametrize("entered", [(), (CUSTOM,)])
def test_the_default_is_the_devices_own_or_what_a_user_entered(result, entered):
    context = Context(custom(*entered, on=result.environment.device))
    assert reference_peak(result, Comparison(), context).peak == default_peak(result, entered)
    assert reference_bandwidth(result, Comparison(), context).peak == default_bandwidth(result)


def test_what_a_user_entered_is_the_default_of_its_device_dtype_and_unit():
    context = Context(custom(CUSTOM))
    assert reference_peak(ok(), Comparison(), context) == PeakChoice("own", CUSTOM)
    assert reference_peak(ok(dtype="bf16"), Comparison(), context).kind == "measured_ceiling"

    entered = Bandwidth(5e10, "own", "me")
    context = Context(custom(bandwidth=entered))
    assert reference_bandwidth(ok(), Comparison(), context).peak is entered
    assert of("own", known_bandwidths(ok(), context)).peak is entered

    context = Context(custom(CUSTOM, bandwidth=Bandwidth(5e10, "own", "me"), on=replace(device(), name="another")))
    assert reference_peak(ok(), Comparison(), context).peak == default_peak(ok())
    assert of("own", known_peaks(ok(), context)).reason.startswith("none entered for fp32 on a made-up processor")
    assert of("own", known_bandwidths(ok(), context)).reason.startswith("none entered for a made-up processor")

    choices = known_peaks(replace(ok(), environment=None), Context(custom(CUSTOM)))
    assert {choice.reason for choice in choices} == {"the result does not name its device"}


@pytest.mark.parametrize(
    ("dtype", "implementation", "words"),
    [
        ("bf16", "torch", "dense, matrix units, fp32 accumulation: https://"),
        ("fp16", "torch", "dense, matrix units, fp32 accumulation: https://"),
        ("fp32", "torch", "dense, vector units, fp32 arithmetic: https://"),
        ("fp32", "numba-cuda", "dense, vector units, fp32 arithmetic: https://"),
    ],
)
def test_a_datasheet_peak_names_density_unit_and_accumulation(dtype, implementation, words):
    result = on_gpu(ok(dtype=dtype, implementation=implementation))
    assert of("datasheet", known_peaks(result, Context())).peak.source.startswith(words)


def test_at_the_rated_clock_the_peak_at_the_measured_clock_is_the_datasheets():
    scaled, rated = {}, {}
    for row in (row for row in ACCELERATORS if row.vendor == "NVIDIA"):
        clock = row.tensor_clock_hz or row.boost_clock_hz
        result = on_gpu(ok(dtype="fp16"), row.driver_names[0], held_hz=clock)
        default, at_clock = default_peak(result), of("held_clock", known_peaks(result, Context())).peak
        rated[row.key] = default and pytest.approx(default.flop_per_s)
        scaled[row.key] = at_clock and at_clock.flop_per_s

    assert scaled == rated


def test_matrix_units_are_scaled_from_their_own_clock_and_vector_units_from_the_boost_clock():
    matrix = of("held_clock", known_peaks(on_gpu(ok(dtype="bf16"), held_hz=0.915e9), Context())).peak
    vector = of("held_clock", known_peaks(on_gpu(ok(), held_hz=0.99e9), Context())).peak
    assert matrix.flop_per_s == pytest.approx(989.4e12 / 2, rel=1e-3)
    assert vector.flop_per_s == pytest.approx(66.9e12 / 2, rel=1e-3)
    assert "0.915" in matrix.source or "915 MHz" in matrix.source
    assert "instead of 1.83 GHz" in matrix.source


def test_a_device_in_no_table_is_scaled_from_the_clock_of_its_formula():
    result = on_gpu(ok(dtype="bf16"), held_hz=0.99e9)
    device = replace(
        result.environment.device,
        name="NVIDIA H100 64GB",
        spec_key=None,
        clock_hz=1.98e9,
        peaks=(Peak("bf16", "matrix", 924e12, "formula", "a test"),),
    )
    result = replace(result, environment=replace(result.environment, device=device))
    scaled = of("held_clock", known_peaks(result, Context())).peak
    assert scaled.flop_per_s == pytest.approx(924e12 * 0.5 / 0.924)


def test_peaks_at_the_measured_clock_need_one_and_a_rated_peak():
    assert "belongs to the clock of its own measurement" in of("held_clock", known_peaks(ok(), Context())).reason

    assert "reported no clock while this ran" in of("held_clock", known_peaks(on_gpu(ok()), Context())).reason

    assert of("measured_ceiling", known_peaks(ok(), Context())).peak == default_peak(ok())


def on_cores(result, cores):
    device = replace(result.environment.device, cores=cores)
    return replace(result, environment=replace(result.environment, device=device))


def test_processors_of_one_name_with_other_cores_are_no_measured_peak_for_each_other():
    asked = on_cores(ok(spec=BARE), 2)
    here, elsewhere = (on_cores(ok(2e-2, size=2048, spec=BARE), cores) for cores in (2, 64))
    assert of("measured_ceiling", known_peaks(asked, measured_before(here, elsewhere))).peak.flop_per_s == (
        pytest.approx(2 * 2048**3 / 2e-2)
    )
    assert of("measured_ceiling", known_peaks(asked, measured_before(elsewhere))).peak is None


LARGE = Shape.of(m=4096, k=4096, n=4096)


def test_a_gpus_measured_peak_is_the_best_large_product_that_is_known():
    slow, fast = (on_gpu(ok(seconds, shape=LARGE, dtype="bf16")) for seconds in (1e-3, 5e-4))
    small = on_gpu(ok(1e-6, size=100, dtype="bf16"))
    found = of("measured_ceiling", known_peaks(small, measured_before(slow, fast, small))).peak
    assert found.flop_per_s == pytest.approx(2 * 4096**3 / 5e-4)
    assert (
        found.source
        == "best large matmul on this device: Matrix multiplication, 4,096 × 4,096 × 4,096, torch in bf16, 2026-01-02"
    )


@pytest.mark.parametrize(
    "known",
    [
        (),
        (on_gpu(ok(4e-3, shape=LARGE)),),  # another dtype
        (on_gpu(ok(size=100, dtype="bf16")),),  # too small
        (on_gpu(ok(4e-3, shape=LARGE, dtype="bf16"), "NVIDIA L4"),),
        (on_gpu(ok(shape=LARGE, dtype="bf16"), uuid="GPU-2"),),
        (on_gpu(ok(4e-3, shape=LARGE, dtype="bf16", implementation="numba-cuda-naive")),),  # fp32 on vector units
        (on_gpu(ok(4e-4, shape=Shape.of(m=16384, k=64, n=16384), dtype="bf16")),),  # 56 FLOP/byte: memory limits it
        (on_gpu(ok(1e-5, shape=LARGE, dtype="bf16")),),  # only the launch was timed
    ],
)
def test_what_says_nothing_about_these_units_is_no_measured_peak(known):
    choice = of("measured_ceiling", known_peaks(on_gpu(ok(dtype="bf16")), measured_before(*known)))
    assert "no large matmul in bf16 on matrix units was measured on this device: run one" in choice.reason


def test_products_on_vector_units_share_one_measured_peak_whatever_unit_they_are_called():
    library = on_gpu(ok(3e-3, shape=LARGE))
    kernel = on_gpu(ok(shape=LARGE, implementation="numba-cuda"))
    found = of("measured_ceiling", known_peaks(kernel, measured_before(library))).peak
    assert (found.unit, found.flop_per_s) == ("vector", pytest.approx(2 * 4096**3 / 3e-3))


def test_a_measured_bandwidth_is_the_best_stream_that_exceeds_the_cache():
    n = 10**8
    stream, cached = (
        on_gpu(ok(seconds, operation="copy", shape=Shape.of(n=size))) for size, seconds in ((n, 2e-4), (10**5, 1e-8))
    )
    found = of("measured_ceiling", known_bandwidths(on_gpu(ok()), measured_before(stream, cached))).peak
    assert found.bytes_per_s == pytest.approx(8 * n / 2e-4)
    assert found.source.startswith("best memory stream on this device: Copy, n = 100,000,000, torch in fp32, 2026")


def test_a_published_peak_carries_its_link_and_says_nothing_about_vector_units():
    found = of("published", known_peaks(on_gpu(ok(dtype="bf16"), "NVIDIA H100 80GB HBM3"), Context())).peak
    assert (found.kind, found.dtype) == ("published", "bf16")
    assert "https://" in found.source

    result = on_gpu(ok(implementation="numba-cuda-naive"), "AMD Instinct MI210")  # it has matrix units for fp32
    assert "this ran on vector units" in of("published", known_peaks(result, Context())).reason


def test_the_choice_or_the_reason_why_it_is_unknown_reaches_the_analysis():
    (found,) = analyzed(on_gpu(ok(dtype="bf16"), held_hz=0.915e9), peak_kind="held_clock").results
    assert (found.peak.peak.kind, found.peak.reason) == ("held_clock", None)

    (found,) = analyzed(ok(), peak_kind="published").results
    assert found.peak.peak is found.mfu is found.bandwidth.peak is found.bandwidth_utilization is None
    assert "the table has no published" in found.peak.reason
    assert "has only matmuls" in found.bandwidth.reason

    results = [on_gpu(ok(1e-3, shape=LARGE, dtype="bf16")), on_gpu(ok(2e-3, shape=LARGE, dtype="bf16"))]
    found = analyzed(*results, peak_kind="measured_ceiling").results
    assert [analyzed_result.mfu for analyzed_result in found] == pytest.approx([1, 0.5])


@pytest.mark.parametrize("earlier", [(), (on_gpu(ok(1e-3, shape=LARGE, dtype="bf16")),)])
def test_a_time_that_hardware_cannot_reach_is_no_measured_peak(earlier):
    launched = on_gpu(ok(1e-6, shape=LARGE, dtype="bf16"))
    (found,) = analyzed(launched, peak_kind="measured_ceiling", earlier=earlier).results
    assert found.mfu == (pytest.approx(1000) if earlier else None)


def test_a_kind_is_read_by_its_name_and_an_unknown_one_is_named_with_those_there_are():
    assert [_peak_kind(kind) for kind in (*sorted(KINDS), "")] == [*sorted(KINDS), None]
    with pytest.raises(InvalidInput, match="kind of peak 'best': expected datasheet, formula, held_clock"):
        _peak_kind("best")


def test_what_another_processor_of_the_same_name_reached_is_no_measured_peak():
    here, there = (replace(processor, peaks=(), bandwidth=None) for processor in (ZEN_5, ZEN_4))
    asked, large = measured_on(here, ok(1e-2, size=600)), measured_on(there, ok(2e-2, size=2048))

    assert of("measured_ceiling", known_peaks(asked, measured_before(measured_on(here, large)))).peak
    assert of("measured_ceiling", known_peaks(asked, measured_before(large))).peak is None
