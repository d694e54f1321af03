"""What the tests on a GPU share: the device, and why a library does not run on it."""

import os
from functools import cache

import pytest

from gpuexplore.backends import load_backend
from gpuexplore.features.selftest.suite.contract import Bench
from gpuexplore.hardware import discover
from gpuexplore.measure import GPU_NUMBERING

LIMIT_S = 300.0


@cache
def why_not(library, device):
    """Return why a library finds no GPU although the driver does, or None."""
    backend = load_backend(library)
    return backend.driver_facts(device).problem if backend.is_available() else f"{library} is not installed"


@pytest.fixture(scope="session")
def gpus():
    """Return every GPU of this machine."""
    os.environ.update(GPU_NUMBERING)  # before anything loads CUDA
    found = [device for device in discover() if device.kind == "cuda"]
    if not found:
        pytest.skip("discovery finds no CUDA device")
    return found


@pytest.fixture(scope="session")
def gpu(gpus):
    """Return the first GPU."""
    return gpus[0]


@pytest.fixture(scope="session")
def second_gpu(gpus):
    """Return the second GPU."""
    if len(gpus) < 2:
        pytest.skip(f"needs two GPUs, and here is {gpus[0].name} only")
    return gpus[1]


@pytest.fixture
def needs(gpu):
    """Return how to skip a test whose library does not run on the GPU, with the reason."""

    def need(library):
        if reason := why_not(library, gpu.id):
            pytest.skip(reason)

    return need


@pytest.fixture
def bench(gpu, tmp_path):
    """Return a bench of the self-test, with a worker of its own and time enough."""
    opened = Bench(gpu, is_quick=False, folder=tmp_path)
    opened.allow(LIMIT_S)
    yield opened
    opened.release()
