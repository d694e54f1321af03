"""Self-test: whether what is measured and computed on this machine is right, and a report to send."""

from gpuexplore.registry import Feature

FEATURE = Feature(
    "selftest",
    commands={"selftest": "whether what is measured and computed on this machine is right, and a report to send"},
)
