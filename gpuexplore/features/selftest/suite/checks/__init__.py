"""The checks, in the order in which they run: what others rest on comes first, what takes longest last."""

from gpuexplore.features.selftest.suite.bench import SelfCheck
from gpuexplore.features.selftest.suite.checks import (
    bandwidth,
    correctness,
    environment,
    ladder,
    recording,
    survival,
    timer,
)

CHECKS: tuple[SelfCheck, ...] = (
    environment.CHECK,
    timer.CHECK,
    timer.FLUSH,
    bandwidth.CHECK,
    ladder.CLOCK,
    ladder.CHECK,
    survival.CHECK,
    correctness.REGISTERS,
    correctness.CHECK,
    recording.CHECK,
)
