"""The arithmetic of moving data, on made-up times."""

from dataclasses import replace

import pytest

from gpuexplore.analysis.prediction import calibrate, predict, predict_each
from gpuexplore.analysis.prediction.calls import calls_of
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Flag
from gpuexplore.features.transfer.analysis import (
    LINKS,
    OWN,
    TimeSpan,
    _predicted_transfer,
    comparison,
    measured_path,
    measured_span,
    path_to,
    readings_of,
)
from gpuexplore.features.transfer.analysis.comparison import (
    BreakEven,
    ComparedSide,
    break_even_size,
    compare,
    first_call_cost,
    side_of,
    stack,
    uses_that_pay,
    which_is_faster,
)
from gpuexplore.features.transfer.measure.contract import CACHE, TransferReading
from gpuexplore.hardware import target_named
from gpuexplore.hardware.nvml import Link
from tests.analysis.made import device, ok
from tests.features.transfer.analysis.made import moves, observed, point, span, work

T4 = target_named("Tesla T4", ())


@pytest.fixture(scope="module")
def calibration():
    return calibrate()


def test_work_is_predicted_in_the_kind_of_calls_that_is_measured(monkeypatch, calibration):
    asked = []

    def noted(cases, calibration, conditions, **more):
        asked.append((len(cases), conditions.calls))
        return predict_each(cases, calibration, conditions, **more)

    monkeypatch.setattr(comparison, "predict_each", noted)
    sides = ComparedSide(device()), ComparedSide(T4, tuple((size, span(2.0, origin="measured")) for size in (64, 256)))
    found = compare("matmul", sides, path_to(T4, OWN, "pinned"), calibration)

    calls = calls_of(ok(on="cuda:0", cache=CACHE))
    assert asked == [(len(found), calls), (len(found) - 3, calls)]  # at once; sizes from 64 to 256 were measured
    kernels = {point.size: point.kernel for point in found}
    assert [kernels[size].origin for size in (32, 64, 128, 512)] == ["predicted", "measured", "measured", "predicted"]


@pytest.mark.parametrize(
    ("sizes", "spread", "found"), [((4, 64), 1.0, (16, 16, 16)), ((1, 4, 64, 1024), 2.0, (16, 4, 64))]
)
def test_the_gpu_wins_from_where_the_times_cross_on_log_scales_in_the_best_and_the_worst_case(sizes, spread, found):
    points = [point(size, cpu=size, move=16.0, spread=spread) for size in sizes]

    assert break_even_size(points) == BreakEven(*found)


def test_a_gpu_that_loses_at_the_largest_size_never_wins_and_one_that_wins_everywhere_from_the_smallest():
    lost = break_even_size([point(4, cpu=20.0, move=16.0), point(64, cpu=15.0, move=16.0, spread=1.1)])

    assert (lost.value, lost.high) == (None, None)
    assert lost.low is not None
    assert break_even_size([point(size, cpu=20.0, move=1.0) for size in (4, 64)]) == BreakEven(4, 4, 4)


@pytest.mark.parametrize(
    ("cpu", "spread", "relation", "statement"),
    [
        (40.0, 1.1, "above", "almost certainly faster on T4"),
        (10.0, 1.1, "below", "faster on this CPU than on T4"),
        (20.0, 2.0, None, "unclear which is faster"),
    ],
)
def test_which_is_faster_at_a_size_is_a_verdict_on_the_ratio_of_both_times(cpu, spread, relation, statement):
    found = which_is_faster(point(4, cpu=cpu, move=16.0, spread=spread), "T4")

    assert found.relation == relation
    assert statement in found.statement
    assert which_is_faster(replace(point(4, cpu=cpu, move=16.0), cpu=None), "T4").relation is None


def test_a_disturbed_reading_is_as_wide_as_its_flags_say():
    calm = TransferReading("torch", "torch", size=4, median_s=1.0, ci95_s=(0.9, 1.1), n=30)
    disturbed = replace(calm, flags=(Flag("contended", "a test", size=1.0),))
    spans = [measured_span(reading) for reading in (calm, disturbed)]

    assert (spans[0].low_s, spans[0].high_s) == pytest.approx((0.9, 1.1))
    assert (spans[1].low_s, spans[1].high_s) == pytest.approx((0.496, 2.015), rel=0.01)
    assert measured_span(TransferReading("torch", "torch", reason="no memory")) is None


def test_unknown_times_have_no_break_even():
    unknown = [type(found)(found.size, None, *[found.there] * 3) for found in [point(4, cpu=1.0, move=1.0)]]

    assert break_even_size(unknown) is None
    assert uses_that_pay(unknown[0]) is None
    assert break_even_size([*unknown, point(8, cpu=1.0, move=2.0)]) == BreakEven(None, None, None)  # known, and never


def test_uses_that_pay_are_the_move_over_what_each_use_gains_with_an_interval_that_may_be_open():
    uses = {(3.0, 1.0): 5, (11.0, 1.0): 1, (1e6, 1.0): 1, (1.0, 1.0): None, (1.0, 2.0): None}

    for (cpu, kernel), expected in uses.items():
        assert uses_that_pay(point(1, cpu=cpu, move=10.0, kernel=kernel)).value == expected
    assert uses_that_pay(point(1, cpu=3.0, move=10.0, kernel=1.0, spread=2.0)) == BreakEven(5, 1, None)


def test_a_sum_adds_the_ends_and_is_measured_where_both_are():
    total = span(1.0, 2.0, "measured") + span(2.0, 2.0)

    assert (total.time_s, total.low_s, total.high_s, total.origin) == (3.0, 1.5, 6.0, "predicted")
    assert (span(1.0, 1.0, "measured") + span(1.0, 1.0, "measured")).origin == "measured"


def test_a_transfer_is_predicted_between_its_ends_and_faster_from_pinned_memory():
    pageable, pinned = (_predicted_transfer(1e9, 10e9, memory) for memory in ("pageable", "pinned"))

    assert pinned.time_s == pytest.approx(10e-6 + 0.1 / 0.78)
    assert pageable.low_s < pageable.time_s < pageable.high_s
    assert pinned.time_s < pageable.time_s
    assert pinned.origin == "predicted"


def test_the_path_is_the_gpu_s_own_link_or_the_one_asked_for_and_another_is_named():
    own, chosen = path_to(T4), path_to(T4, "pcie5-x16", "pinned")

    assert own.bytes_per_s == pytest.approx(15.75e9, rel=1e-3)
    assert own.source.startswith("https://")
    assert (chosen.title, chosen.bytes_per_s) == ("PCIe 5.0 x16", LINKS["pcie5-x16"].bytes_per_s)
    assert path_to(device(device_id="cuda:0")).title == "PCIe 3.0 x16"
    assert Link(4, 16).bytes_per_s == pytest.approx(31.5e9, rel=1e-3)
    assert Link(99, 16).bytes_per_s is None
    for link, memory, named in (("usb", "pinned", "usb"), (OWN, "cloud", "cloud")):
        with pytest.raises(InvalidInput, match=named):
            path_to(T4, link, memory)


def test_measured_transfers_replace_predicted_ones_also_between_sizes():
    readings = [
        TransferReading("torch host to device, pinned", "torch", size, size, median_s=size * 1e-9, n=10)
        for size in (1000, 100_000)
    ]
    path = measured_path(Link(3, 16), readings, "pinned")

    assert path.move(10_000, "host to device").time_s == pytest.approx(1e-5)
    assert path.move(10, "host to device").time_s == pytest.approx(1e-6)
    assert path.move(1_000_000, "host to device").time_s == pytest.approx(1e-3)
    assert path.move(1000, "host to device").origin == "measured"
    assert path.move(1000, "device to host").origin == "predicted"
    assert measured_path(None, (), "pinned").move(1000, "device to host") is None


def test_measured_work_is_taken_as_it_is_and_predicted_beyond(calibration):
    points = compare("matmul", (side_of(device(), work()), ComparedSide(T4)), path_to(T4), calibration)
    by_size = {found.size: found for found in points}

    assert by_size[64].cpu == TimeSpan(1e-5, 0.9 * 1e-5, 1.1 * 1e-5, "measured")
    assert 1e-5 < by_size[256].cpu.time_s < 1e-2
    assert by_size[256].cpu.origin == "measured"
    assert by_size[2048].cpu.origin == by_size[64].kernel.origin == "predicted"
    assert by_size[64].there.time_s == pytest.approx(
        2 * _predicted_transfer(4 * 64**2, path_to(T4).bytes_per_s, "pageable").time_s
    )


def test_a_faster_link_wins_at_smaller_sizes(calibration):
    cpu = ComparedSide(device())
    paths = [path_to(T4, f"pcie{generation}-x16") for generation in (3, 5)]
    slow, fast = (break_even_size(compare("matmul", (cpu, ComparedSide(T4)), path, calibration)) for path in paths)

    assert slow.low <= slow.value
    assert fast.value <= slow.value


def test_a_first_use_has_its_parts_and_unknown_ones_stay_unknown():
    first = first_call_cost(work())
    parts = stack(point(8, cpu=1.0, move=2.0, kernel=0.5), cpu_first=first, gpu_first=None)

    assert first.time_s == pytest.approx(0.5 - 1e-5)
    assert first_call_cost(()) is None
    assert [place for place, span in parts.items() if span is None] == [("GPU", "first call")]
    assert [reading.name for reading in readings_of(observed(), "calls")] == ["numpy call"]
    assert len(readings_of(observed(), "moves")) == len(moves())
