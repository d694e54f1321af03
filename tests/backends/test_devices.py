"""Of two GPUs the one that was asked for: events, flushes, waits and facts, on a stand-in for the libraries."""

import re
import subprocess
import sys
from types import SimpleNamespace

import numba
import pytest

from gpuexplore.backends import BACKENDS, DriverFacts, cuda_driver, load_backend
from gpuexplore.core.dtypes import DTYPES
from tests.backends import fake_cuda

ON_CUDA = [name for name in BACKENDS if "cuda" in load_backend(name).DEVICE_KINDS]
EACH = pytest.mark.parametrize("name", ON_CUDA)


@pytest.fixture
def cuda(monkeypatch):
    return fake_cuda.install(monkeypatch)


@EACH
@pytest.mark.parametrize("device", ["cuda:0", "cuda:1"])
def test_events_calls_and_flushes_of_a_device_go_to_it_whichever_is_the_current_one(cuda, name, device):
    backend = load_backend(name)
    timer, flush = backend.timer(device, lambda: 0), backend.flusher(device, 1000)
    assert {where for _, where in cuda.log} <= {fake_cuda.index_of(device)}  # what fills a buffer once
    cuda.log.clear()
    cuda.current = other = 1 - fake_cuda.index_of(device)

    samples = timer.sample(lambda: cuda.note("call"), calls=2, flush=flush)

    expected = ["spin", *["overwrite", "read", "event", "call", "event"] * 2, "wait"]
    assert cuda.log == [(what, fake_cuda.index_of(device)) for what in expected]
    assert samples == [1e-3, 1e-3]
    assert cuda.current == other


@EACH
def test_waiting_for_a_device_waits_for_it(cuda, name):
    load_backend(name).synchronize("cuda:1")

    assert cuda.log == [("wait", 1)]


@pytest.mark.parametrize("name", ["torch", "torch_compile", "triton"])
def test_graph_is_captured_on_a_stream_of_its_device(cuda, name):
    """torch's own stream for captures is of the device that was captured on first: a graph of another stays empty."""
    backend = load_backend(name)

    for device in (0, 1):
        backend.capture(lambda: cuda.note("call"), f"cuda:{device}", 2)

    assert cuda.log == [
        (what, device) for device in (0, 1) for what in (f"capture on a stream of {device}", "call", "call")
    ]


@pytest.mark.parametrize("name", ["numba_cuda", "triton", "cupy"])
def test_library_that_launches_on_the_current_device_is_on_that_of_its_output(cuda, name):
    load_backend(name).empty((3,), DTYPES["fp32"], "cuda:1")

    assert cuda.current == 1


@EACH
def test_facts_are_those_of_the_device_that_was_asked_for(cuda, name):
    facts = load_backend(name).driver_facts("cuda:1")

    assert facts.uuid.replace("-", "") == fake_cuda.UUIDS[1].replace("-", "")
    assert facts.cache_bytes == fake_cuda.CACHE_BYTES[1]


@pytest.mark.parametrize("name", BACKENDS)
def test_library_that_finds_no_gpu_says_which_driver_it_needs(cuda, name, monkeypatch):
    for library in (sys.modules["torch"].cuda, sys.modules["cupy"], numba.cuda):
        monkeypatch.setattr(library, "is_available", lambda: False)

    facts = load_backend(name).driver_facts("cuda:0")

    if name in ON_CUDA:
        said = r"is built for CUDA 13\.\d, which needs driver 580\.65\.06 or newer, but finds no GPU \(https://"
        assert re.search(said, facts.problem)
    assert facts == DriverFacts(problem=facts.problem)


def test_numba_says_which_driver_it_needs_though_it_starts_on_an_older_one(cuda, monkeypatch):
    monkeypatch.setattr(numba.cuda.cudadrv.driver.driver, "get_version", lambda: (12, 4))

    facts = load_backend("numba_cuda").driver_facts("cuda:0")

    said = "numba-cuda is built for CUDA 13.5, which needs driver 580.65.06 or newer, but the installed driver supports"
    assert facts == DriverFacts(problem=f"{said} at most CUDA 12.4: make install CUDA=12")


@pytest.mark.parametrize(
    ("supported", "remedy"), [(12_040, "make install CUDA=12"), (11_080, "install a newer driver")]
)
def test_a_library_asks_the_driver_by_nvml_and_names_the_command_that_mends_it(monkeypatch, supported, remedy):
    nvml = SimpleNamespace(nvmlSystemGetCudaDriverVersion_v2=lambda: supported, NVMLError=OSError)
    monkeypatch.setattr("gpuexplore.hardware.nvml.load_nvml", lambda: nvml)

    found = cuda_driver.why_no_gpu("torch 2.13.0", "13.0")

    assert found.startswith(
        "torch 2.13.0 is built for CUDA 13.0, which needs driver 580.65.06 or newer, but the installed driver"
    )
    assert remedy in found


def test_an_installed_package_names_pip(monkeypatch):
    monkeypatch.setattr(cuda_driver, "IS_INSTALLED_FROM_WHEEL", True)

    assert "pip install 'gpuexplore[cuda12]'" in cuda_driver.why_too_old("torch", (13, 0), (12, 8))


def test_numba_warns_of_no_small_grid():
    pytest.importorskip("numba.cuda")
    code = "import gpuexplore.kernels.cuda_kernel; from numba import config; print(config.CUDA_LOW_OCCUPANCY_WARNINGS)"

    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "0\n"


def test_torch_for_cpus_says_so(cuda, monkeypatch):
    monkeypatch.setattr(sys.modules["torch"].cuda, "is_available", lambda: False)
    monkeypatch.setattr(sys.modules["torch"].version, "cuda", None)

    problem = load_backend("torch").driver_facts("cuda:0").problem

    assert (
        problem
        == "torch 2.13.0 is built for CPUs only: install its build for CUDA (https://pytorch.org/get-started/locally/)"
    )
