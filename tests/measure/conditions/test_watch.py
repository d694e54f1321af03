"""The CPU is looked at from before the preparation, and its speed before and after the samples."""

import pytest

from gpuexplore.backends import EventTimer, HostTimer
from gpuexplore.core.model import Telemetry
from gpuexplore.hardware.cpu_times import Account, CpuTimes
from gpuexplore.measure.conditions import watch as watching
from gpuexplore.measure.conditions.watch import Watch
from tests.measure.fakes import CPU, GPU, environment


def times(at_s, idle_s, own_s=0.0):
    return CpuTimes(at_s, (Account(1, idle_s, 0.0, at_s, 0.01),), own_s)


@pytest.fixture
def waited(monkeypatch):
    """Lay out readings of a window with other work in its first second; return the waits for pool threads."""
    readings = iter([times(0.0, 0.0), times(1.0, 0.0), times(2.0, 1.0)])
    rates = iter([100.0, 50.0])
    monkeypatch.setattr(watching, "read_cpu_times", lambda: next(readings))
    monkeypatch.setattr(watching, "clock_probe", lambda: next(rates))
    return []


def opened(device, waited):
    return Watch(device, lambda: waited.append(1), watching.read_cpu_times())


def test_both_windows_are_judged(waited):
    watch = opened(CPU, waited)
    watch.begin_samples()

    assert [loss.share for loss in watch.losses()] == [0.0, 0.5]


def test_the_probe_runs_before_and_after_the_samples_while_pools_sleep(waited):
    watch = opened(CPU, waited)
    watch.begin_samples()
    told = watch.described(environment(CPU), CPU, watch.state())

    assert (told.before.probe_flop_per_s, told.after.probe_flop_per_s) == (100.0, 50.0)
    assert len(waited) == 2


def test_threads_that_never_rest_are_noticed(waited):
    restless, quiet = (Watch(CPU, lambda said=said: said, watching.read_cpu_times()) for said in (False, True))
    restless.state()
    quiet.state()

    assert (restless.has_busy_idle_threads, quiet.has_busy_idle_threads) == (True, False)


def test_a_gpu_is_not_probed_on_its_host(waited):
    watch = opened(GPU, waited)
    watch.begin_samples()
    told = watch.described(environment(GPU), GPU, Telemetry())

    assert (told.before.probe_flop_per_s, waited) == (None, [])
    assert watch.state().probe_flop_per_s is None


def test_a_gpu_is_asked_while_it_is_busy_and_its_reasons_add_up(waited, monkeypatch):
    told = iter(
        [
            Telemetry(clock_hz=1.2e9, throttle_reasons=("software power cap",)),
            Telemetry(clock_hz=1.5e9, throttle_reasons=("hardware slowdown",)),
        ]
    )
    now_s = iter([0.0, 0.01, 0.02])
    monkeypatch.setattr(watching, "read_telemetry", lambda device: next(told))
    monkeypatch.setattr(watching, "perf_counter", lambda: next(now_s))
    watch = opened(GPU, waited)
    timer = EventTimer(lambda: 0, *[lambda *_: None] * 5)
    watch.look_at_busy(timer)

    for _ in range(3):
        timer.meanwhile()  # the second is too soon after the first

    state = watch.state()
    assert state.clock_hz == 1.5e9
    assert state.throttle_reasons == ("software power cap", "hardware slowdown")


def test_a_host_timer_has_no_device_to_look_at(waited):
    timer = HostTimer(lambda: 0)
    opened(CPU, waited).look_at_busy(timer)

    assert not hasattr(timer, "meanwhile")
