"""gpuexplore: how fast a computation is, how fast it should be, and why."""

__version__ = "0.1.0"
