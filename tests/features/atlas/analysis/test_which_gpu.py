"""Which GPU for a call: measured where it was measured, else predicted; energy and cost follow from the time."""

from dataclasses import replace

import pytest

from gpuexplore.analysis.prediction import calibrate
from gpuexplore.analysis.what_if.what_if import Known
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Origin, Shape
from gpuexplore.features.atlas.analysis import points
from gpuexplore.features.atlas.analysis.which_gpu import LEAST_S, ORDERS, price_of, ranked, usual_devices, which_gpu
from gpuexplore.hardware import ACCELERATORS, as_device, row_of
from gpuexplore.operations import OPERATIONS
from gpuexplore.recorded import recorded_results

SQUARE = Shape.of(m=8192, k=8192, n=8192)
DEVICES = {row.key: as_device(row) for row in ACCELERATORS}


@pytest.fixture(scope="module")
def known():
    return Known(calibrate(), recorded=tuple(result for _, result in recorded_results()))


def choices(known, *keys, operation="matmul", shape=SQUARE, dtype="fp16", **entered):
    known = replace(known, prices_per_hour=entered)
    found = which_gpu(operation, shape, dtype, devices=[DEVICES[key] for key in keys], known=known)
    return dict(zip(keys, found, strict=True))


def test_a_published_time_of_this_very_call_is_what_is_told(known):
    found = choices(known, "rtx-3090")["rtx-3090"]

    assert found.found.origin is Origin.PUBLISHED
    assert found.point in points("matmul", ["rtx-3090"], ["fp16"])
    assert (found.time.value, found.time.low) == (found.point.time_s, found.point.time_s)
    assert found.found.mfu == pytest.approx(found.point.mfu)
    assert found.found.basis == f"published by {found.point.citation.name}: {found.point.conditions}"


@pytest.mark.parametrize(
    ("key", "size", "dtype", "origin"),
    [("h200-sxm-141gb", 4096, "fp32", Origin.RECORDED), ("l4", 8192, "fp16", Origin.PREDICTED)],
)
def test_what_gpuexplore_recorded_comes_first_and_what_was_not_measured_is_predicted(known, key, size, dtype, origin):
    found = choices(known, key, shape=Shape.of(m=size, k=size, n=size), dtype=dtype)[key]

    assert (found.found.origin, found.point) == (origin, None)
    assert found.time.low < found.time.value < found.time.high


def test_a_published_time_with_a_launch_in_it_is_none_of_a_short_call(known):
    short = min(points("matmul", ["rtx-5090"]), key=lambda point: point.time_s)
    found = choices(known, "rtx-5090", shape=short.shape, dtype=short.dtype)["rtx-5090"]

    assert (short.calls, short.time_s < LEAST_S["single"]) == ("single", True)
    assert (found.found.origin, found.point) == (Origin.PREDICTED, None)


def test_a_published_time_of_a_graph_counts_where_a_launch_would_hide_behind_the_call(known):
    timed = [point for point in points("linear", ["b200-sxm-180gb"], ["bf16"]) if point.calls == "graph"]
    long, short = (pick(timed, key=lambda point: point.time_s) for pick in (max, min))
    found = [
        choices(known, "b200-sxm-180gb", operation="linear", shape=point.shape, dtype="bf16")["b200-sxm-180gb"].point
        for point in (long, short)
    ]

    assert short.time_s < LEAST_S["graph"] < long.time_s
    assert found == [long, None]


def test_a_published_time_with_cold_caches_counts_among_its_own_kind_alone(known):
    timed = [point for point in points("matmul", ["mi355x"], ["bf16"]) if point.calls == "cold"]
    long = max(timed, key=lambda point: point.time_s)
    found = [
        choices(replace(known, calls=calls), "mi355x", shape=long.shape, dtype="bf16")["mi355x"].point
        for calls in ("cold", "queued")
    ]

    assert long.time_s > LEAST_S["queued"]
    assert found == [long, None]


def test_a_published_time_above_a_peak_is_left_to_the_prediction(known):
    fast = max(points("conv2d", ["p100-pcie-16gb"]), key=lambda point: point.mfu or 0)
    found = choices(known, "p100-pcie-16gb", operation="conv2d", shape=fast.shape, dtype="fp32")["p100-pcie-16gb"]

    assert fast.mfu > 1.5
    assert (found.found.origin, found.found.impossible) == (Origin.PREDICTED, None)


def test_rates_energy_and_cost_follow_from_the_time(known):
    found = choices(known, "l4", "t4", l4=0.8)["l4"]
    time_s = found.time.value

    assert found.flop_per_s == pytest.approx(2 * 8192**3 / time_s)
    assert found.bytes_per_s == pytest.approx(3 * 8192**2 * 2 / time_s)
    assert found.found.energy_j == pytest.approx(time_s * row_of(DEVICES["l4"]).power_w)
    assert found.cost_of_million == pytest.approx(1e6 * time_s / 3600 * 0.8)
    assert (found.price_per_hour, found.listed) == (0.8, None)


def test_a_listed_price_holds_where_none_was_entered_and_unknown_stays_unknown(known):
    found = choices(known, "t4", "l4")

    assert found["t4"].listed is price_of("t4")
    assert found["t4"].price_per_hour == price_of("t4").usd_per_hour
    assert found["t4"].cost_of_million == pytest.approx(1e6 * found["t4"].found.cost)
    assert (found["l4"].price_per_hour, found["l4"].listed, found["l4"].cost_of_million) == (None, None, None)


def test_a_device_of_this_machine_has_theprice_of_its_row(known):
    here = replace(DEVICES["t4"], id="cuda:0", kind="cuda")
    (found,) = which_gpu("matmul", SQUARE, "fp16", devices=[here], known=replace(known, prices_per_hour={"t4": 2.0}))

    assert found.cost_of_million == pytest.approx(1e6 * found.time.value / 3600 * 2)


def test_a_dtype_without_units_has_no_time_and_a_reason(known):
    found = choices(known, "t4", dtype="tf32")["t4"]

    assert (found.time, found.flop_per_s, found.cost_of_million, found.found.energy_j) == (None, None, None, None)
    assert "Tesla T4" in found.found.reason


@pytest.mark.parametrize("by", ORDERS)
def test_the_best_comes_first_and_unknown_last(known, by):
    found = ranked(choices(known, "t4", "rtx-3090", "l4", "h100-sxm5-80gb", "p40").values(), by)
    values = [ORDERS[by](choice) for choice in found]
    told = [value for value in values if value is not None]

    assert told == sorted(told)
    assert values[len(told) :] == [None] * (len(values) - len(told))


def test_what_does_not_fit_comes_after_what_does(known):
    huge = Shape.of(m=81920, k=81920, n=81920)
    found = ranked(choices(known, "rtx-4090", "rtx-a6000", shape=huge).values())

    assert [(choice.device.id, choice.found.fits) for choice in found] == [("rtx-a6000", True), ("rtx-4090", False)]
    assert found[0].time.value > found[1].time.value


def test_another_order_is_refused_with_those_there_are(known):
    with pytest.raises(InvalidInput, match="order 'beauty': expected time, energy, memory, price"):
        ranked(choices(known, "t4").values(), "beauty")


def test_usual_devices_are_those_that_were_measured_or_have_a_price():
    keys = [device.id for device in usual_devices()]

    assert {"t4", "mi100", "rtx-4080", "h200-sxm-141gb"} <= set(keys)
    assert "apple-m1" not in keys
    assert all(keys.count(key) == 1 for key in keys)
    assert set(OPERATIONS) >= {point.operation for point in points()}
