"""The checks, in the order in which they run: what others rest on comes first, what takes longest last."""

from gpuexplore.features.selftest.suite.checks import (
    bandwidth,
    correctness,
    environment,
    ladder,
    recording,
    survival,
    timer,
)
from gpuexplore.features.selftest.suite.contract import SelfCheck

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
