"""The local engine: what every engine does, and what only one on this machine can."""

import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event, Thread

import psutil
import pytest

from gpuexplore.core.errors import GpuExploreError, InvalidInput
from gpuexplore.core.model import Case, Device, Options, Result, Shape, Status
from gpuexplore.hardware.discovery import VARIABLE, _simulated_devices
from gpuexplore.jobs.engines import PREEMPT, local
from gpuexplore.jobs.engines.local import LocalEngine
from gpuexplore.jobs.locks import compiler_lock
from tests.jobs.conftest import DEVICE
from tests.jobs.engine_outcomes import *  # noqa: F403 - pytest finds them here
from tests.jobs.engine_outcomes import Later, measured
from tests.waiting import DEADLINE_S, wait_until

pytestmark = pytest.mark.long
NAMED = Device("fake", "fake", "broken")


def test_what_was_printed_is_logged_and_cut(engine_with, cases_of, caplog):
    with engine_with() as engine:
        measured(engine, cases_of("print-a-line", "flood"))

    assert sum(len(message) for message in caplog.messages) < 2 * 64_000
    assert any("hello" in message for message in caplog.messages)


def test_simulated_device_takes_the_time_of_a_measurement_and_its_results_are_flagged():
    case = Case("matmul", Shape.of(m=100, k=100, n=100), "fp32", "numpy", "simulated:0", Options(budget_s=0.05))
    engine, start_s = LocalEngine(_simulated_devices({VARIABLE: "1"})), time.monotonic()

    result = measured(engine, [case])["numpy"]
    cancelled = measured(engine, [replace(case, options=Options(budget_s=60))], cancelled=Later(3))["numpy"]
    engine.close()

    assert time.monotonic() - start_s >= case.options.budget_s
    assert (result.measurement.median_s, [flag.name for flag in result.flags]) == (2e-6, ["simulated"])
    assert result.environment.device.is_simulated
    assert cancelled.status is Status.CANCELLED


def test_who_leaves_off_after_the_first_pass_has_it_at_once_and_a_warm_worker():
    case = Case("matmul", Shape.of(m=100, k=100, n=100), "fp32", "numpy", "simulated:0", Options(budget_s=2.0))
    engine, events = LocalEngine(_simulated_devices({VARIABLE: "1"})), []

    def told():
        return any(isinstance(event, Result) for event in events) and PREEMPT

    engine.measure([case], events.append, told)
    worker = engine._workers[case.device]
    after = measured(engine, [replace(case, options=Options(budget_s=0.01))])["numpy"]
    same = engine._workers[case.device] is worker
    engine.close()

    results = [event for event in events if isinstance(event, Result)]
    assert [(result.status, result.provisional) for result in results] == [(Status.OK, True), (Status.CANCELLED, False)]
    assert results[1].reason == "preempted by other runs: it will be finished later"
    assert (after.status, same) == (Status.OK, True)


SUPERVISE = """
from gpuexplore.jobs.engines.local import LocalEngine
from gpuexplore.core.model import Case, Device, Shape
engine = LocalEngine([Device("fake", "fake", "x")], runner="tests.jobs.fake_runner")
for name in ("fine", "patient"):
    case = Case("matmul", Shape.of(n=1), "fp32", name, "fake")
    engine.measure([case], lambda event: print(getattr(event, "measurement", None), flush=True), lambda: False)
"""


def test_worker_ends_with_the_process_that_started_it():
    with subprocess.Popen([sys.executable, "-c", SUPERVISE], stdout=subprocess.PIPE, text=True) as parent:
        told = [parent.stdout.readline() for _ in range(3)]  # taken up, its result, the second taken up
        worker = psutil.Process(int(float(re.search(r"\((\d+)\.0,\)", told[1])[1])))
        parent.kill()

    assert not psutil.wait_procs([worker], timeout=DEADLINE_S)[1]


def test_unknown_device_is_unsupported_and_never_another(engine_with, cases_of):
    with engine_with() as engine:
        result = measured(engine, cases_of("fine", device="cuda:7"))["fine"]

    assert result.status is Status.UNSUPPORTED
    assert result.reason == "device 'cuda:7': expected fake"


def test_warm_returns_the_device_and_its_worker_measures(engine_with, cases_of):
    device = Device("fake", "fake", "a device for tests")

    with engine_with() as engine:
        assert engine.warm(device) == device
        assert measured(engine, cases_of("fine"))["fine"].status is Status.OK


def test_a_run_that_comes_while_a_worker_warms_up_goes_first_and_the_warm_up_goes_on_after_it(engine_with, cases_of):
    slow = Device("fake", "fake", "slow to warm up")

    with engine_with(slow) as engine:
        warming = Thread(target=pytest.raises, args=(GpuExploreError, engine.warm, slow))  # it never has the time
        warming.start()
        wait_until_started(engine)
        assert measured(engine, cases_of("fine"))["fine"].status is Status.OK
        assert measured(engine, cases_of("fine"))["fine"].status is Status.OK
        assert warming.is_alive()
    warming.join()


def test_warm_says_why_a_device_cannot_be_used(engine_with):
    with engine_with(NAMED) as engine:
        with pytest.raises(GpuExploreError, match="RuntimeError: no driver"):
            engine.warm(NAMED)
        with pytest.raises(InvalidInput, match="device 'cuda:7': expected fake"):
            engine.warm(Device("cuda:7", "cuda", "absent"))
    with pytest.raises(GpuExploreError, match="the engine is closing"):
        engine.warm(NAMED)


def test_run_that_waits_for_another_device_to_warm_up_can_be_cancelled(engine_with, cases_of):
    endless = Device("fake", "fake", "endless")

    with engine_with(endless) as engine:
        warming = Thread(target=pytest.raises, args=(GpuExploreError, engine.warm, endless))
        warming.start()
        wait_until_started(engine)
        results = measured(engine, cases_of("fine"), cancelled=Later(3))
        assert warming.is_alive()
    warming.join()

    assert results["fine"].reason == "the run was cancelled"


def test_measurement_on_the_cpu_gives_way_to_a_compiler_and_can_be_cancelled_meanwhile(engine_with, cases_of):
    with engine_with(Device("cpu", "cpu", "a CPU")) as engine, ThreadPoolExecutor(1) as page, compiler_lock():
        measuring = page.submit(measured, engine, cases_of("fine", device="cpu"), cancelled=Later(3))
        results = measuring.result()

    assert results["fine"].reason == "the run was cancelled"


def test_compilers_that_never_pause_have_their_share_and_a_measurement_goes_on(engine_with, cases_of, monkeypatch):
    monkeypatch.setattr(local, "MOST_COMPILING_S", 0.3)
    with engine_with(Device("cpu", "cpu", "a CPU")) as engine, compiler_lock():
        began_s = time.monotonic()
        results = measured(engine, cases_of("fine", device="cpu"))
        waited_s = time.monotonic() - began_s

    assert results["fine"].status is Status.OK
    assert waited_s >= 0.3


def test_run_need_not_wait_until_all_devices_are_warm(engine_with, cases_of):
    stop = Event()

    def warm_again_and_again():
        while not stop.is_set():
            engine.warm(DEVICE)

    with engine_with() as engine:
        warming = Thread(target=warm_again_and_again)
        warming.start()
        wait_until_started(engine)
        results = measured(engine, cases_of("fine"))
        stop.set()
        warming.join()

    assert results["fine"].status is Status.OK


def wait_until_started(engine):
    wait_until(lambda: "fake" in engine._workers)
