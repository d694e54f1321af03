"""The real runner, in a worker process that knows the evil implementations too."""

from gpuexplore.measure.runner import measure_cases
from tests.measure.evil import catalogue

__all__ = ["measure_cases", "warm_up"]

catalogue.register(setattr, dict.__setitem__)


def warm_up(device, hurried):
    """Load nothing more: what hangs or crashes must do so while it is measured."""
