import json
from functools import partial

import numpy as np
import pytest

from gpuexplore.core.errors import Cancelled, IncorrectOutput, InvalidInput, TooLarge, Unsupported
from gpuexplore.core.model import Device
from gpuexplore.features.tensors import measure
from gpuexplore.features.tensors.analysis import TensorView, row_order
from gpuexplore.features.tensors.measure import _check_read, _elements_of, _layout_of, _readers, perform
from gpuexplore.hardware import CpuLoss
from gpuexplore.measure import runner
from tests.measure.fakes import CPU, QUIET, FakeClock, FakeWork, candidate, run_with

NAMES = ("loop contiguous", "loop strided", "copy contiguous", "copy strided")


def made(clock, **seconds):
    """Return readers whose calls take as long, by their names; 1 ms where nothing is said."""
    works = {name: FakeWork(clock, [seconds.get(name.replace(" ", "_"), 1e-3)]) for name in NAMES}
    return [
        (candidate(work, name=name), partial(_check_read, name, lambda: np.ones(1), np.ones(1)))
        for name, work in works.items()
    ]


@pytest.fixture
def reported(monkeypatch):
    """Return a function that performs with readers of made-up durations, and returns what was reported."""

    def performed(cancelled=lambda: False, readers_of=made, **seconds):
        clock, events = FakeClock(tick_ns=100), []
        monkeypatch.setattr(measure, "_readers", lambda *_: readers_of(clock, **seconds))
        perform(
            {"rows": "30", "columns": "20"}, CPU, **run_with(events.append, cancelled, clock=clock, isolation=QUIET)
        )
        return events

    return performed


def test_a_device_that_torch_alone_finds_is_refused(monkeypatch):
    monkeypatch.setattr(measure, "_readers", None)
    device = Device("mps:0", "mps", "a made-up GPU")

    with pytest.raises(Unsupported, match="a strided read needs a CPU or an NVIDIA GPU, but mps:0 is Apple MPS"):
        perform({"rows": "30", "columns": "20"}, device, **run_with(print, bool, clock=FakeClock(), isolation=QUIET))


def test_the_ratio_of_strided_over_contiguous_is_that_of_the_calls(reported):
    (report,) = reported(loop_strided=13e-3, copy_strided=8e-3)

    assert report["ratios"]["loop"]["median"] == pytest.approx(13, rel=1e-3)
    assert report["ratios"]["copy"]["median"] == pytest.approx(8, rel=1e-3)
    assert report["readings"]["loop strided"]["median_s"] == pytest.approx(13e-3, rel=1e-3)
    low, high = report["readings"]["loop strided"]["ci95_s"]
    assert low <= report["readings"]["loop strided"]["median_s"] <= high
    assert report["ratios"]["loop"]["ci95"] is not None


def test_the_report_is_json_with_bytes_layout_and_environment_and_what_disturbed_it(reported, monkeypatch):
    (report,) = json.loads(json.dumps(reported(), allow_nan=False))

    assert (report["shape"], report["strides"], report["read_bytes"]) == ([20, 30], [1, 20], 2400)
    assert report["environment"]["device"]["id"] == "cpu"
    assert (report["threads"], report["cache"]) == (1, "warm")
    assert report["readings"]["copy contiguous"]["bytes_per_s"] == pytest.approx(2400 / 1e-3, rel=1e-3)

    monkeypatch.setattr(runner, "cpu_loss", lambda *_: CpuLoss(0.5))
    (report,) = reported()

    assert [reading for reading in report["readings"].values() if "contended" not in str(reading["flags"])] == []


def test_what_is_cancelled_or_fails_reports_nothing(reported):
    with pytest.raises(Cancelled):
        reported(cancelled=lambda: True)

    def broken(clock):
        found = made(clock)
        found[1][0].run.raises_at = 8
        return found

    with pytest.raises(ValueError, match="broken in the middle"):
        reported(readers_of=broken)


def test_a_reader_that_is_wrong_is_never_timed(reported):
    works = []

    def wrong(clock):
        works.append(FakeWork(clock, [1e-3]))
        return [(candidate(works[0]), partial(_check_read, "loop strided", lambda: np.zeros(1), np.ones(1)))]

    with pytest.raises(IncorrectOutput, match="loop strided read the wrong elements"):
        reported(readers_of=wrong)
    assert works[0].calls == 1


def test_a_reader_that_turns_wrong_while_it_is_timed_reports_nothing(reported):
    outputs = iter([np.ones(1)])

    def turning(clock):
        check = partial(_check_read, "loop strided", lambda: next(outputs, np.zeros(1)), np.ones(1))
        return [(candidate(FakeWork(clock, [1e-3])), check)]

    with pytest.raises(IncorrectOutput, match="loop strided read the wrong elements"):
        reported(readers_of=turning)


def test_rows_and_columns_are_read_transposed_and_a_layout_shows_what_numpy_shows():
    assert _layout_of({"rows": "3", "columns": "5"}) == TensorView((5, 3), (1, 5))
    assert _layout_of({"shape": "5,3", "strides": "1,5"}) == TensorView((5, 3), (1, 5))

    storage = np.arange(15, dtype=np.uint32)

    assert _elements_of(storage, TensorView((5, 3), (1, 5))).tolist() == storage.reshape(3, 5).T.tolist()
    assert TensorView((5, 3), (1, 5)).span == 15
    assert row_order((5, 3)) == (3, 1)
    assert measure.LOOPS.keys() == {"cpu", "cuda"}


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({}, "rows and columns, or shape and strides"),
        ({"rows": "3"}, "rows and columns, or shape and strides"),
        ({"rows": "x", "columns": "3"}, "rows 'x'"),
        ({"rows": "0", "columns": "3"}, "rows '0'"),
        ({"rows": "1000000", "columns": "1000000"}, "1,000,000,000,000 elements"),
        ({"shape": "2,2", "strides": "1"}, "one value per axis"),
        ({"shape": "1,1,1,1,1", "strides": "1,1,1,1,1"}, "at most 4"),
        ({"shape": "2,2", "strides": "1,-2"}, "strides '1,-2'"),
        ({"shape": "2", "strides": "999999999999"}, "at most 33,554,432"),
        ({"shape": "100000,100000", "strides": "0,0"}, "10,000,000,000 elements"),
    ],
)
def test_other_arguments_are_refused_by_name(arguments, named):
    with pytest.raises(InvalidInput) as caught:
        _layout_of(arguments)

    assert named in str(caught.value)


def test_what_memory_cannot_hold_is_not_built(monkeypatch):
    monkeypatch.setattr(measure, "free_bytes", lambda _: 1000)
    with pytest.raises(TooLarge, match="cpu has 1000 B free"):
        perform({"rows": "300", "columns": "300"}, CPU, **run_with(print, clock=FakeClock()))


@pytest.mark.slow
def test_a_real_transpose_is_measured():
    events = []
    perform({"rows": "300", "columns": "200"}, CPU, **run_with(events.append))

    (report,) = events
    assert tuple(report["readings"]) == NAMES
    assert all(reading["n"] >= 10 and reading["median_s"] > 0 for reading in report["readings"].values())


@pytest.mark.long
@pytest.mark.parametrize(
    "layout",
    [
        TensorView((5, 3), (1, 5)),
        TensorView((257, 255), (1, 257)),
        TensorView((7, 9), (0, 2)),
        TensorView((2, 3, 4, 5), (1, 2, 6, 24)),
        TensorView((1,), (1,)),
    ],
)
def test_each_reader_reads_the_elements_of_its_layout(layout):
    found = list(_readers(layout, CPU, FakeClock()))

    assert tuple(made.case.implementation for made, _ in found) == NAMES
    for made, check in found:
        with pytest.raises(IncorrectOutput):
            check()
        made.run()
        check()
