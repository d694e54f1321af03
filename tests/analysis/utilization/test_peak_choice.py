"""What a result can be held against: every kind has a peak with its source, or a sentence on why it is unknown."""

from dataclasses import replace
from typing import get_args

import pytest

from gpuexplore.analysis.run.derived import figures
from gpuexplore.analysis.utilization.peak_choice import (
    Against,
    Denominator,
    bandwidth_denominators,
    chosen,
    chosen_bandwidth,
    denominators,
    peak_kind,
)
from gpuexplore.analysis.utilization.utilization import applicable_peak, known_bandwidth
from gpuexplore.devices import ACCELERATORS, as_device, match
from gpuexplore.errors import InvalidInput
from gpuexplore.model import Bandwidth, Peak, PeakKind, Shape, Telemetry
from tests.analysis.made import ok

KINDS = set(get_args(PeakKind))
OWN = Peak("fp32", "matrix", 2e12, "own", "me")
BARE = {"peaks": (), "bandwidth": None}


def on_gpu(result, name="NVIDIA H200", *, held_hz=None, uuid="GPU-1"):
    """Return `result` as if it came from a GPU of the table."""
    row = match(name)
    device = replace(as_device(row), id="cuda:0", kind="cuda", name=name, uuid=uuid)
    return replace(result, environment=replace(result.environment, device=device, after=Telemetry(clock_hz=held_hz)))


def of(kind, found):
    return next(one for one in found if one.kind == kind)


@pytest.mark.parametrize("find", [denominators, bandwidth_denominators])
@pytest.mark.parametrize(
    "result",
    [ok(), ok(spec=BARE), replace(ok(), environment=None), on_gpu(ok()), ok(operation="copy", shape=Shape.of(n=8))],
)
def test_every_kind_has_a_peak_with_a_source_or_a_reason(find, result):
    found = find(result)
    assert {one.kind for one in found} == KINDS
    assert len(found) == len(KINDS)
    for one in found:
        assert one.peak.kind == one.kind if one.peak else len(one.reason) > 10
        assert one.peak is None or one.peak.source


def test_a_denominator_is_known_or_has_a_reason():
    with pytest.raises(InvalidInput, match="or else a reason"):
        Denominator("own")
    with pytest.raises(InvalidInput, match="or else a reason"):
        Denominator("own", OWN, "both")


@pytest.mark.parametrize(
    "result", [ok(), ok(spec=BARE), on_gpu(ok()), on_gpu(ok(dtype="bf16")), ok(implementation="numba-cuda")]
)
@pytest.mark.parametrize("own", [(), (OWN,)])
def test_the_usual_one_is_the_devices_own_or_what_a_visitor_entered(result, own):
    assert chosen(result, Against(own_peaks=own)).peak == applicable_peak(result, own)
    assert chosen_bandwidth(result).peak == known_bandwidth(result)


def test_an_own_bandwidth_replaces_the_devices():
    own = Bandwidth(5e10, "own", "me")
    assert chosen_bandwidth(ok(), Against(own_bandwidth=own)).peak is own
    assert of("own", bandwidth_denominators(ok(), Against(own_bandwidth=own))).peak is own


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
    assert of("datasheet", denominators(result)).peak.source.startswith(words)


@pytest.mark.parametrize("row", [row for row in ACCELERATORS if row.vendor == "NVIDIA"], ids=lambda row: row.key)
def test_at_the_printed_clock_the_held_peak_is_the_datasheets(row):
    name, clock = row.driver_names[0], row.tensor_clock_hz or row.boost_clock_hz
    result = on_gpu(ok(dtype="fp16"), name, held_hz=clock)
    usual, held = applicable_peak(result), of("held_clock", denominators(result)).peak
    assert (held and held.flop_per_s) == (usual and pytest.approx(usual.flop_per_s))


def test_matrix_units_are_scaled_from_their_own_clock_and_vector_units_from_the_boost_clock():
    matrix = of("held_clock", denominators(on_gpu(ok(dtype="bf16"), held_hz=0.915e9))).peak
    vector = of("held_clock", denominators(on_gpu(ok(), held_hz=0.99e9))).peak
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
    held = of("held_clock", denominators(result)).peak
    assert held.flop_per_s == pytest.approx(924e12 * 0.5 / 0.924)


def test_a_measured_ceiling_has_no_peak_at_another_clock_and_says_so():
    assert "at whatever clock held then" in of("held_clock", denominators(ok())).reason


def test_without_a_clock_there_is_no_held_peak():
    assert "told no clock while this ran" in of("held_clock", denominators(on_gpu(ok()))).reason


def test_a_cpus_measured_ceiling_is_that_of_its_loop():
    assert of("measured_ceiling", denominators(ok())).peak == applicable_peak(ok())


def on_cores(result, cores):
    device = replace(result.environment.device, cores=cores)
    return replace(result, environment=replace(result.environment, device=device))


def test_processors_of_one_name_with_other_cores_are_no_ceiling_for_each_other():
    asked = on_cores(ok(spec=BARE), 2)
    here, elsewhere = (on_cores(ok(2e-2, size=2048, spec=BARE), cores) for cores in (2, 64))
    assert of("measured_ceiling", denominators(asked, Against(known=(here, elsewhere)))).peak.flop_per_s == (
        pytest.approx(2 * 2048**3 / 2e-2)
    )
    assert of("measured_ceiling", denominators(asked, Against(known=(elsewhere,)))).peak is None


LARGE = Shape.of(m=4096, k=4096, n=4096)


def test_a_gpus_measured_ceiling_is_the_best_large_product_that_is_known():
    slow, fast = (on_gpu(ok(seconds, shape=LARGE, dtype="bf16")) for seconds in (1e-3, 5e-4))
    small = on_gpu(ok(1e-6, size=100, dtype="bf16"))
    found = of("measured_ceiling", denominators(small, Against(known=(slow, fast, small)))).peak
    assert found.flop_per_s == pytest.approx(2 * 4096**3 / 5e-4)
    assert (
        found.source
        == "best large product here: Matrix multiplication, 4,096 × 4,096 × 4,096, torch in bf16, 2026-01-02"
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
def test_what_says_nothing_about_these_units_is_no_ceiling(known):
    one = of("measured_ceiling", denominators(on_gpu(ok(dtype="bf16")), Against(known=known)))
    assert "no large product in bf16 on matrix units was measured on this device: run one" in one.reason


def test_products_on_vector_units_share_one_ceiling_whatever_unit_they_are_called():
    library = on_gpu(ok(3e-3, shape=LARGE))
    kernel = on_gpu(ok(shape=LARGE, implementation="numba-cuda"))
    found = of("measured_ceiling", denominators(kernel, Against(known=(library,)))).peak
    assert (found.unit, found.flop_per_s) == ("vector", pytest.approx(2 * 4096**3 / 3e-3))


def test_a_measured_bandwidth_is_the_best_stream_that_exceeds_the_cache():
    n = 10**8
    stream, cached = (
        on_gpu(ok(seconds, operation="copy", shape=Shape.of(n=size))) for size, seconds in ((n, 2e-4), (10**5, 1e-8))
    )
    found = of("measured_ceiling", bandwidth_denominators(on_gpu(ok()), Against(known=(stream, cached)))).peak
    assert found.bytes_per_s == pytest.approx(8 * n / 2e-4)
    assert found.source.startswith("best stream through memory here: Copy, n = 100,000,000, torch in fp32, 2026")


def test_a_published_peak_carries_its_link():
    found = of("published", denominators(on_gpu(ok(dtype="bf16"), "NVIDIA H100 80GB HBM3"))).peak
    assert (found.kind, found.dtype) == ("published", "bf16")
    assert "https://" in found.source


def test_published_products_on_matrix_units_say_nothing_about_vector_units():
    result = on_gpu(ok(implementation="numba-cuda-naive"), "AMD Instinct MI210")  # it has matrix units for fp32
    assert "this ran on vector units" in of("published", denominators(result)).reason


def test_the_choice_reaches_the_figures_with_its_reason_when_unknown():
    (known,) = figures([on_gpu(ok(dtype="bf16"), held_hz=0.915e9)], against=Against("held_clock"))
    assert (known.peak.kind, known.peak_unknown) == ("held_clock", None)
    (unknown,) = figures([ok()], against=Against("published"))
    assert unknown.peak is unknown.mfu is unknown.bandwidth is unknown.bandwidth_utilization is None
    assert "in our table" in unknown.peak_unknown
    assert "holds products only" in unknown.bandwidth_unknown


def test_the_results_themselves_are_known_to_their_figures():
    results = [on_gpu(ok(1e-3, shape=LARGE, dtype="bf16")), on_gpu(ok(2e-3, shape=LARGE, dtype="bf16"))]
    shares = [figure.mfu for figure in figures(results, against=Against("measured_ceiling"))]
    assert shares == pytest.approx([1, 0.5])


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_kind_is_read_by_its_name(kind):
    assert peak_kind(kind) == kind


def test_an_unknown_kind_is_named_with_those_there_are():
    assert peak_kind("") is None
    with pytest.raises(InvalidInput, match="kind of peak 'best': accepted are datasheet, formula, measured_ceiling"):
        peak_kind("best")
