"""The CPU is looked at from before the preparation, and its speed before and after the samples."""

import pytest

from gpuexplore.devices.cpu_times import Account, CpuTimes
from gpuexplore.measure import watch as watching
from gpuexplore.measure.watch import Watch
from gpuexplore.model import Telemetry
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

    assert (restless.is_restless, quiet.is_restless) == (True, False)


def test_a_gpu_is_not_probed_on_its_host(waited):
    watch = opened(GPU, waited)
    watch.begin_samples()
    told = watch.described(environment(GPU), GPU, Telemetry())

    assert (told.before.probe_flop_per_s, waited) == (None, [])
    assert watch.state().probe_flop_per_s is None
