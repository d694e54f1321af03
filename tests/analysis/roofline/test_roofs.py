"""Roofs of made-up devices with round numbers: every rate and ridge can be checked by hand."""

from dataclasses import replace

import pytest

from gpuexplore.analysis.roofs import compute_roof, memory_roof, ridges, roofs
from gpuexplore.analysis.utilization.utilization import device_of
from gpuexplore.core.model import Bandwidth, CacheRoof, Flag, Shape
from gpuexplore.hardware import ACCELERATORS, as_device
from tests.analysis.made import device, failed, ok
from tests.hardware.processors import ZEN_4, ZEN_5, measured_on

CACHE = CacheRoof(1, 64_000, Bandwidth(8e11, "measured_ceiling", "triad"))
CPU = replace(device(), caches=(CACHE,))
TRIAD = {"operation": "triad", "implementation": "numba-cpu", "shape": Shape.of(n=1000)}  # 12,000 bytes, 2,000 FLOPs


def on(result, **changes):
    return replace(result, environment=replace(result.environment, device=replace(device(), **changes)))


def reached(*results, on_device=None):
    """Return what results on one device reached, by default on theirs."""
    return [roof for roof in roofs(on_device or device_of(results[0]), results) if roof.reached]


def test_every_peak_cache_and_memory_is_a_roof_and_every_pair_has_its_ridge():
    assert [(roof.kind, roof.label, roof.rate, roof.measured) for roof in roofs(CPU)] == [
        ("compute", "fp32, matrix units", 1e12, True),
        ("compute", "bf16, matrix units", 4e12, True),
        ("compute", "fp32, vector units", 5e11, False),
        ("cache", "L1 cache", 8e11, True),
        ("memory", "Memory", 1e11, True),
    ]

    assert roofs(device(peaks=(), bandwidth=None)) == ()

    found = {(high.label, slope.label): intensity for (high, slope), intensity in ridges(roofs(CPU)).items()}

    assert len(found) == 6
    assert found["fp32, matrix units", "Memory"] == pytest.approx(10)
    assert found["bf16, matrix units", "L1 cache"] == pytest.approx(5)


def test_every_row_of_the_table_has_roofs_for_each_of_its_peaks():
    devices = {accelerator.key: as_device(accelerator) for accelerator in ACCELERATORS}
    drawn = {key: roofs(listed) for key, listed in devices.items()}
    heights = {
        key: [(roof.dtype, roof.unit, roof.rate) for roof in found if roof.kind == "compute"]
        for key, found in drawn.items()
    }

    assert heights == {
        key: [(peak.dtype, peak.unit, peak.flop_per_s) for peak in listed.peaks] for key, listed in devices.items()
    }
    assert [key for key, found in drawn.items() if any(roof.measured or roof.reached for roof in found)] == []


def test_best_large_product_becomes_a_roof_with_its_case_date_and_origin():
    (roof,) = reached(ok(2e-3, size=600), ok(1e-3, size=600))

    assert roof.rate == pytest.approx(2 * 600**3 / 1e-3)
    assert (roof.label, roof.dtype, roof.unit) == ("best matmul in fp32, matrix units", "fp32", "matrix")
    assert roof.source == "Matrix multiplication, 600 × 600 × 600, torch in fp32, 2026-01-02"

    here, recorded = ok(2e-3, size=600), ok(1e-3, size=600)

    assert [roof.source[:10] for roof in roofs(CPU, [here], [recorded]) if roof.reached] == ["recorded: "]
    assert [roof.source[:10] for roof in roofs(CPU, [recorded], [here]) if roof.reached] == ["Matrix mul"]

    slow, fast = ok(2e-3, size=600), on(ok(1e-3, size=600), uuid="GPU-2")
    (roof,) = reached(slow, fast)

    assert roof.rate == pytest.approx(2 * 600**3 / 1e-3)


def test_only_believable_large_products_of_this_device_become_roofs():
    assert reached(ok(size=30)) == []

    assert reached(ok(1e-9, size=600), failed(size=600)) == []

    (roof,) = reached(ok(4e-4, size=600, flags=[Flag("over_peak", "1.08 TFLOP/s of 1.00")]))

    assert roof.rate == pytest.approx(1.08e12)

    (roof,) = reached(ok(size=600, dtype="bf16", implementation="numpy"))

    assert roof.dtype == "fp32"

    assert reached(on(ok(size=600), name="another"), on_device=CPU) == []
    assert reached(on(ok(size=600), cores=4), on_device=replace(CPU, cores=2)) == []

    assert len(reached(on(ok(size=600), cores=6))) == 1  # 4.3e8 FLOPs, 6.7e7 for a tile
    assert reached(on(ok(size=600), cores=7)) == []

    result = measured_on(replace(ZEN_4, peaks=(), bandwidth=None), ok(size=600))

    assert len(reached(result, on_device=replace(ZEN_4, peaks=(), bandwidth=None))) == 1
    assert reached(result, on_device=replace(ZEN_5, peaks=(), bandwidth=None)) == []


def test_streams_show_a_bandwidth_where_no_cache_may_have_delivered_them():
    (roof,) = reached(ok(1e-6, **TRIAD), ok(2e-6, **TRIAD))

    assert (roof.kind, roof.rate) == ("memory", pytest.approx(1.2e10))
    assert "STREAM triad, n = 1,000, numba-cpu in fp32, 2026-01-02" in roof.source

    assert reached(ok(1e-9, spec={"cache_bytes": 3001}, **TRIAD)) == []
    assert reached(ok(1e-9, spec={"cache_bytes": None}, **TRIAD)) == []
    assert reached(ok(1e-9, spec={"cache_bytes": 3001}, cache="cold", **TRIAD)) == []  # it may keep what is written
    assert len(reached(ok(1e-6, spec={"cache_bytes": 3000}, cache="cold", **TRIAD))) == 1

    cold = {"operation": "reduce_sum", "shape": Shape.of(m=10, n=100), "implementation": "torch", "cache": "cold"}

    assert len(reached(ok(1e-6, spec={"cache_bytes": 10**6}, **cold))) == 1


def test_limits_are_found_by_what_they_limit():
    found = roofs(CPU, [ok(size=600)])

    assert compute_roof(found, "fp32", "vector").rate == 5e11
    assert compute_roof(found, "fp16", "matrix") is None
    assert memory_roof(found).rate == 1e11
    assert memory_roof(()) is None
