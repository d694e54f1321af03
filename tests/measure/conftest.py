"""A GPU that is the host: torch on the CPU stands for one, and NumPy for a library that computes on it."""

from dataclasses import replace

import pytest

from gpuexplore.backends import numpy as numpy_backend
from gpuexplore.measure.arrays import device_arrays, large
from gpuexplore.measure.candidates import failure
from gpuexplore.measure.sample import contrast
from tests.measure.evil import catalogue
from tests.measure.fakes import GPU


@pytest.fixture
def gpu(monkeypatch):
    """Return a GPU where all cases of more than 32768 elements stay."""
    catalogue.register(monkeypatch.setattr, monkeypatch.setitem)
    monkeypatch.setattr(failure, "_broken", {})
    monkeypatch.setattr(contrast, "_known", {})
    monkeypatch.setattr(numpy_backend, "DEVICE_KINDS", ("cpu", "cuda"))
    monkeypatch.setattr(large, "LARGE", 2**15)
    monkeypatch.setattr(device_arrays, "torch_device_of", lambda device: "cpu")
    return replace(GPU, cache_bytes=2**10, uuid=None)
