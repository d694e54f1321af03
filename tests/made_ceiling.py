"""A made-up ceiling of this machine's CPU: measuring one takes seconds."""

from gpuexplore.hardware.cpu import cpu_device
from gpuexplore.hardware.cpu_ceiling.cache import ATTEMPTS, save_ceiling
from gpuexplore.hardware.cpu_ceiling.ceiling import Ceiling


def save_made_ceiling(cpu=None, rate=1e12, threads=None):
    """Save a ceiling that no worker measures again, in the home that the environment names."""
    cpu = cpu or cpu_device()
    rates, when = {"fp64": rate, "fp32": rate}, "2026-01-02T03:04:05+00:00"
    save_ceiling(cpu, Ceiling(cpu.name, threads or cpu.cores, rates, rate, 1, when, attempts=ATTEMPTS))
