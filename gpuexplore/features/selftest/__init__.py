"""Self-test: check the measurements and results of this machine, and write a report to send."""

from gpuexplore.registry import Feature

FEATURE = Feature(
    "selftest",
    commands={"selftest": "check the measurements and results of this machine, and write a report to send"},
)
