"""The checks, in the order in which they run: what others rest on comes first, what takes longest last."""

from gpuexplore.features.selftest.suite.check import SelfCheck
from gpuexplore.features.selftest.suite.checks import (
    bandwidth,
    clock,
    correctness,
    environment,
    flush,
    ladder,
    recording,
    registers,
    survival,
    timer,
)

CHECKS: tuple[SelfCheck, ...] = (
    environment.CHECK,
    timer.CHECK,
    flush.CHECK,
    bandwidth.CHECK,
    clock.CHECK,
    ladder.CHECK,
    survival.CHECK,
    registers.CHECK,
    correctness.CHECK,
    recording.CHECK,
)
