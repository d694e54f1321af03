"""What is described is what is measured on: the same GPU by NVML and by CUDA, with the cache that CUDA knows of."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from gpuexplore.backends import DriverFacts
from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.errors import Unsupported
from gpuexplore.hardware import nvml
from gpuexplore.measure import process_settings
from gpuexplore.measure.candidates import candidate
from gpuexplore.measure.candidates.candidate import ASSUMED_FLUSH_BYTES, build_candidate, device_for, new_flush
from gpuexplore.measure.check.inputs import make_inputs
from gpuexplore.operations import OPERATIONS
from tests.hardware.fake_nvml import FakeGpu, FakeNvml
from tests.measure.fakes import CPU, GPU, case

MINE, OTHERS = "aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002"
HERE = replace(GPU, uuid=f"GPU-{MINE}")


@pytest.fixture(autouse=True)
def gpus(monkeypatch):
    found = [FakeGpu("a made-up GPU", f"GPU-{uuid}", 2**30) for uuid in (MINE, OTHERS)]
    monkeypatch.setattr(nvml, "load_nvml", lambda: FakeNvml(found))
    return found


class FakeLibrary:
    """A CUDA library that computes on the host, and says of its GPU what it is told to say."""

    DEVICE_KINDS = ("cuda",)

    def __init__(self, *facts):
        self.facts, self.flushed, self.made = DriverFacts(*facts), [], []

    def driver_facts(self, device):
        return self.facts

    def flusher(self, device, size_bytes):
        self.flushed.append((device, size_bytes))
        return lambda: None

    def empty(self, *_):
        self.made.append("out")

    to_device = empty

    def is_available(self):
        return True

    def unsupported(self, dtype, device):
        return None

    def set_threads(self, count):
        self.made.append(f"{count} threads")

    def timer(self, device, clock):
        return SimpleNamespace()


@pytest.mark.parametrize("uuid", [MINE, MINE.upper(), MINE.replace("-", ""), "aaaaaaaa", None])
def test_gpu_that_cuda_calls_the_same_or_does_not_name_in_full_is_measured(uuid):
    assert device_for(FakeLibrary(uuid), HERE) == HERE


def test_gpu_that_cuda_numbers_otherwise_is_refused_with_what_to_set():
    with pytest.raises(Unsupported) as refused:
        device_for(FakeLibrary(OTHERS), HERE)

    assert str(refused.value) == (
        f"cuda:0 is a made-up GPU (GPU-{MINE}), but CUDA would use GPU-{OTHERS} in this process: "
        "set CUDA_DEVICE_ORDER=PCI_BUS_ID before anything loads CUDA"
    )


def test_library_that_finds_no_gpu_is_refused_with_the_driver_that_is_there_and_the_one_it_needs():
    library = FakeLibrary(None, None, "torch 2.13.0 is built for CUDA 13.0, which needs driver 580.65.06 or newer")

    with pytest.raises(Unsupported, match=r"needs driver 580\.65\.06 or newer; a made-up GPU has driver 535\.1$"):
        device_for(library, replace(HERE, driver="535.1"))


def test_instance_of_a_gpu_is_not_compared(gpus):
    """CUDA names the instance where NVML names the GPU it is part of, or the other way round."""
    assert device_for(FakeLibrary(OTHERS), replace(HERE, uuid="MIG-1")).uuid == "MIG-1"

    gpus[0].mig = True
    assert device_for(FakeLibrary(OTHERS), HERE) == HERE


def test_gpu_without_a_uuid_is_not_compared():
    assert device_for(FakeLibrary(OTHERS), replace(HERE, uuid=None)).uuid is None


def test_cpu_is_not_asked_about():
    assert device_for(FakeLibrary(OTHERS, 5), replace(CPU, cache_bytes=None)).cache_bytes is None


@pytest.mark.parametrize(("known", "told", "found"), [(2**20, 2**21, 2**20), (None, 2**21, 2**21), (None, None, None)])
def test_cache_is_the_tables_then_the_drivers_then_unknown(known, told, found):
    assert device_for(FakeLibrary(MINE, told), replace(HERE, cache_bytes=known)).cache_bytes == found


@pytest.mark.parametrize(("told", "flushed"), [(2**21, 2**22), (None, ASSUMED_FLUSH_BYTES)])
def test_gpu_of_no_row_is_flushed_by_what_its_driver_says_or_by_what_is_assumed(monkeypatch, told, flushed):
    library = FakeLibrary(MINE, told)
    made = built(monkeypatch, library, replace(HERE, cache_bytes=None))

    assert library.flushed == [("cuda:0", flushed)]
    assert (made.device.cache_bytes, made.flush is None) == (told, False)


def test_nothing_is_allocated_on_another_gpu(monkeypatch):
    library = FakeLibrary(OTHERS)

    with pytest.raises(Unsupported, match="CUDA_DEVICE_ORDER"):
        built(monkeypatch, library, HERE)
    assert library.made == []


def test_multiprocessors_of_a_gpu_are_no_threads_of_its_library(monkeypatch):
    library = FakeLibrary(MINE)
    built(monkeypatch, library, replace(HERE, cores=132))

    assert library.made == ["out"] * 3


def test_warm_needs_no_flush():
    assert new_flush("warm", HERE, FakeLibrary()) is None


def built(monkeypatch, library, device):
    monkeypatch.setattr(candidate, "load_backend", lambda name: library)
    monkeypatch.setattr(candidate, "load_build", lambda *_: lambda inputs, out, dtype: lambda: None)
    operation, asked = OPERATIONS["vector_add"], case("torch", device=device.id)
    inputs = make_inputs(operation, asked.shape, DTYPES["fp32"], "normal")
    return build_candidate(asked, operation, device, inputs=inputs, clock=lambda: 0)


@pytest.mark.parametrize("before", [None, "FASTEST_FIRST"])
def test_process_that_measures_numbers_gpus_as_nvml_does(monkeypatch, before):
    if before:
        monkeypatch.setenv("CUDA_DEVICE_ORDER", before)

    assert process_settings()["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
