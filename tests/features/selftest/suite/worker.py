"""The worker of a self-test on the stand-in."""

from threadpoolctl import threadpool_limits

from gpuexplore.features.selftest.suite import probes
from gpuexplore.features.selftest.suite.worker import measure_cases, perform, warm_up
from gpuexplore.measure.sample import prepare
from tests.features.selftest.suite import stand_in

__all__ = ["measure_cases", "perform", "warm_up"]

stand_in.install()
probes.perf_counter_ns = stand_in.CLOCK
probes.kernel_of = stand_in.kernel_of
probes.compile_for = stand_in.compile_for
prepare.WARM_UP_IDLE_GPU_S = 0.01  # its clock needs no warming up
threadpool_limits(1)  # small products, which threads that wait for a busy core make slow
