import json
import os
import subprocess
import sys
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest

from gpuexplore.activity import kind_named
from gpuexplore.core.errors import Cancelled, IncorrectOutput, InvalidInput, TooLarge
from gpuexplore.core.serialization import decode
from gpuexplore.features.transfer import measure as transfer
from gpuexplore.features.transfer.measure import IN_A_ROW, _awaited, _Way, _work_sizes_of, moves, perform
from gpuexplore.features.transfer.measure.contract import (
    SIZES_BYTES,
    TransferReading,
    TransferReadings,
    sizes_of,
    timed,
)
from gpuexplore.hardware.nvml import Link, link_of
from gpuexplore.operations import OPERATIONS
from tests.measure.fakes import CPU, GPU, QUIET, FakeClock, FakeWork, candidate, measurement, run_with
from tests.waiting import DEADLINE_S


def way(clock, *, right=True, calls=1, name="a copy"):
    return _Way(
        TransferReading(name, "numpy", 100, 200),
        candidate(FakeWork(clock, [1e-3]), name=name),
        lambda: right,
        calls=calls,
    )


@pytest.fixture
def reported(monkeypatch):
    """Return a function that performs with ways and work of made-up durations, and returns what was reported."""

    def performed(cancelled=lambda: False, **about):
        clock, payloads = FakeClock(tick_ns=100), []
        made = lambda *_: [way(clock, **about)]  # noqa: E731
        work = lambda *_, **__: (TransferReading("matmul, size 8", "torch", size=8),)  # noqa: E731
        for name, fake in {"moves": made, "calls": made, "_measure_work": work}.items():
            monkeypatch.setattr(transfer, name, fake)
        perform({"operation": "matmul"}, CPU, **run_with(payloads.append, cancelled, clock=clock, isolation=QUIET))
        return [decode(TransferReadings, json.loads(json.dumps(payload, allow_nan=False))) for payload in payloads]

    return performed


def test_each_part_is_reported_on_its_own_with_times_and_environment(reported):
    found = reported()

    assert [part.part for part in found] == ["moves", "calls", "work"]
    assert len(found[0].readings) == len(SIZES_BYTES)
    assert found[0].readings[0].median_s == pytest.approx(1e-3, rel=1e-2)
    assert found[0].readings[0].bytes_per_s == pytest.approx(2e5, rel=1e-2)
    assert (found[0].on_gpu, found[0].link) == (False, None)
    assert found[0].environment.device.id == "cpu"


def test_the_time_of_launches_in_a_row_is_that_of_one(reported):
    assert reported(calls=10)[1].readings[0].median_s == pytest.approx(1e-4, rel=1e-2)


def test_data_that_did_not_arrive_are_never_timed_and_what_is_cancelled_reports_nothing(reported):
    with pytest.raises(IncorrectOutput, match="a copy wrote wrong values"):
        reported(right=False)

    with pytest.raises(Cancelled):
        reported(cancelled=lambda: True)


@pytest.mark.parametrize("arguments", [{}, {"operation": "voodoo"}, {"size": "3"}])
def test_other_arguments_are_refused(arguments):
    with pytest.raises(InvalidInput):
        perform(arguments, CPU, **run_with(print))


def test_what_memory_cannot_hold_is_not_built(monkeypatch):
    monkeypatch.setattr(transfer, "free_bytes", lambda _: 1000)
    with pytest.raises(TooLarge):
        perform({"operation": "matmul"}, CPU, **run_with(print, clock=FakeClock()))


def test_the_kind_loads_this_module():
    assert import_module(kind_named("transfer").module).perform is perform


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_every_operation_has_sizes_to_compare_and_cheap_ones_to_measure(operation):
    sizes, measured = sizes_of(operation), _work_sizes_of(operation)

    assert len(sizes) >= 5
    assert set(measured) <= set(sizes)
    assert 3 <= len(measured) <= 8


def test_a_reading_keeps_its_reason_and_takes_its_time():
    reading = timed(TransferReading("a", "numpy", 10, 20), measurement(*[2.0] * 10), calls=2)

    assert (reading.median_s, reading.ci95_s, reading.bytes_per_s) == (1.0, (1.0, 1.0), 20.0)
    assert TransferReading("a", "numpy", reason="too large").bytes_per_s is None


def test_launches_are_followed_by_one_wait():
    events = []
    backend = SimpleNamespace(synchronize=lambda device: events.append(f"wait for {device}"))
    made = SimpleNamespace(run=lambda: events.append("launch"), backend=backend, case=SimpleNamespace(device="cuda:0"))
    _awaited(made, IN_A_ROW)()

    assert events == ["launch"] * IN_A_ROW + ["wait for cuda:0"]


class Nvml:
    """An NVML that knows one GPU."""

    NVMLError = RuntimeError

    def __init__(self, lanes=16):
        self.lanes = lanes

    def nvmlDeviceGetHandleByUUID(self, uuid):  # noqa: N802 NVML's names
        return uuid

    def nvmlDeviceGetMaxPcieLinkGeneration(self, handle):  # noqa: N802 NVML's names
        return 4

    def nvmlDeviceGetMaxPcieLinkWidth(self, handle):  # noqa: N802 NVML's names
        if self.lanes is None:
            raise RuntimeError("not supported")
        return self.lanes


def test_the_link_is_what_nvml_says_and_else_unknown():
    assert link_of(GPU, Nvml()) == Link(4, 16)
    assert link_of(GPU, Nvml(lanes=None)) is None
    assert link_of(CPU, Nvml()) is None


@pytest.mark.long
def test_memory_copies_copy():
    found = list(moves(4096, CPU, FakeClock()))

    assert [way.reading.library for way in found] == ["numpy", "torch"]
    for way in found:
        assert not way.is_right()
        way.candidate.run()
        way.check()


COPIES = """
import numpy as np
from gpuexplore.features.transfer.measure.numba_copies import copies_by_numba

for name, moved, run, is_right in copies_by_numba(np.arange(1, 300, dtype=np.float32), "cuda:0"):
    before = is_right()
    run()
    print(name, moved, before, is_right(), sep=",")
"""


@pytest.mark.long
def test_numba_copies_what_it_should_in_the_simulator():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", COPIES],
        env=os.environ | {"NUMBA_ENABLE_CUDASIM": "1"},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )

    assert done.stdout.splitlines() == [
        "to_device,1,False,True",
        "copy_to_host,1,False,True",
        "kernel with host arrays,6,False,True",
        "kernel with device arrays,0,False,True",
    ], done.stderr


@pytest.mark.gpu
def test_what_is_moved_to_a_gpu_arrives():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch finds no GPU")
    from gpuexplore.hardware import discover

    gpu = next(device for device in discover() if device.kind == "cuda")
    found = list(moves(65536, gpu, FakeClock()))
    for way in found:
        way.candidate.run()

    assert [way.reading.name for way in found if not way.is_right()] == []


@pytest.mark.slow
def test_a_cpu_is_measured():
    from gpuexplore.hardware import discover

    payloads = []
    perform(
        {"operation": "vector_add"},
        next(device for device in discover() if device.kind == "cpu"),
        **run_with(payloads.append),
    )
    moved, calls, work = (decode(TransferReadings, payload) for payload in payloads)

    assert all(reading.median_s > 0 for part in (moved, calls) for reading in part.readings)
    assert {reading.library for reading in calls.readings} == {"numpy", "numba-cpu", "torch"}
    assert np.all([reading.median_s or reading.reason for reading in work.readings])
