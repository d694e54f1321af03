"""torch on devices of AMD, Apple and Intel, by stand-ins: none of them was ever here."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from gpuexplore.backends import EventTimer, HostTimer, host, load_backend
from gpuexplore.backends import torch as torch_backend
from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.errors import TooLarge, Unsupported
from gpuexplore.core.model import Device, Status
from gpuexplore.hardware.torch_devices import TORCH_KINDS
from gpuexplore.measure.candidates.candidate import device_for, flush_bytes, unsupported
from gpuexplore.measure.check.group import check_memory
from gpuexplore.measure.conditions.environment import free_bytes
from gpuexplore.operations import OPERATIONS, operation_named
from gpuexplore.operations.conv2d import torch as torch_convolution
from gpuexplore.operations.triad import torch as torch_elementwise
from tests.analysis.made import case
from tests.backends import fake_cuda, fake_place
from tests.measure.fakes import FakeClock, FakeWork
from tests.measure.gpu_on_host import measured_there

BACKEND = load_backend("torch")
EACH = pytest.mark.parametrize("kind", TORCH_KINDS)
PLACES = {"rocm": "cuda:1", "mps": "mps:0", "xpu": "xpu:1"}


def made(kind, **facts):
    return Device(f"{kind}:0", kind, f"a made-up GPU of {TORCH_KINDS[kind].title}", **facts)


def id_of(kind):
    return f"{kind}:{PLACES[kind][-1]}"


@pytest.fixture
def part(monkeypatch):
    return fake_place.install(monkeypatch)


@EACH
def test_torch_calls_a_device_by_its_own_name_whatever_cuda_may_see(monkeypatch, kind):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")  # which would make every CUDA device the first one

    assert torch_backend.torch_device(id_of(kind)) == PLACES[kind]
    assert (torch_backend.torch_device("cuda:3"), torch_backend.torch_device("cpu")) == ("cuda:0", "cpu")


@pytest.mark.parametrize(
    ("hip", "called", "device"),
    [
        (None, "cuda", "cuda:1"),
        ("6.4", "cuda", "rocm:1"),
        (None, "mps", "mps:1"),
        (None, "xpu", "xpu:1"),
        (None, "meta", "cpu"),
    ],
)
def test_what_torch_calls_a_device_is_called_by_the_build_of_torch(monkeypatch, hip, called, device):
    monkeypatch.setattr(torch.version, "hip", hip)

    assert torch_backend.device_of(called, 1) == device


@EACH
def test_waiting_waits_for_the_device(part, kind):
    BACKEND.synchronize(id_of(kind))

    assert part.log == [("wait",)] if kind == "mps" else [("wait", PLACES[kind])]


@pytest.mark.parametrize("kind", ["rocm", "xpu"])
def test_events_surround_each_call_on_its_device_and_nothing_spins_before_them(part, kind):
    timer = BACKEND.timer(id_of(kind), lambda: 0)

    samples = timer.sample(lambda: part.log.append("call"), calls=2, flush=lambda: part.log.append("flush"))

    assert samples == [1e-3, 1e-3]
    assert part.log == [("on", PLACES[kind]), *["flush", "event", "call", "event"] * 2, ("wait", PLACES[kind])]
    assert isinstance(timer, EventTimer)
    with pytest.raises(Unsupported, match="for a known time"):
        timer.spin(1e-3)


def test_mps_is_timed_by_the_host_around_calls_that_are_awaited(part):
    assert isinstance(BACKEND.timer("mps:0", lambda: 0), HostTimer)


def queue_on(clock, work_s):
    """Return a call that only enqueues, and a wait in which what was enqueued takes its time."""
    waiting = []

    def wait():
        clock.spend(work_s * len(waiting))
        waiting.clear()

    return lambda: waiting.append(1), wait


def test_an_awaited_batch_holds_the_work_of_all_its_calls_and_nothing_from_before():
    clock = FakeClock()
    call, wait = queue_on(clock, 2e-3)
    call()  # what still runs when the batch begins

    assert HostTimer(clock, wait).sample(call, calls=4, flush=None) == [2e-3]


def test_an_awaited_call_behind_a_flush_is_timed_without_it():
    clock = FakeClock()
    call, wait = queue_on(clock, 2e-3)

    assert HostTimer(clock, wait).sample(call, calls=3, flush=FakeWork(clock, [5e-3])) == [2e-3]


@pytest.mark.parametrize(("call_s", "calls"), [(1e-6, 10_000), (1e-3, 10), (1.0, 1)])
def test_an_awaited_batch_is_long_against_a_wait(call_s, calls):
    assert HostTimer(FakeClock(), lambda: None).calls_per_round(call_s) == calls


@EACH
@pytest.mark.parametrize("name", ["fp32", "bf16", "fp16"])
def test_values_survive_the_way_there_and_back_and_nan_fills(monkeypatch, kind, name):
    fake_place.on_host(monkeypatch)
    dtype, values = DTYPES[name], DTYPES[name].round(np.arange(6.0).reshape(2, 3))
    array, out = BACKEND.to_device(values, dtype, f"{kind}:0"), BACKEND.empty((2, 3), dtype, f"{kind}:0")

    BACKEND.load(out, values)
    assert (BACKEND.stored(array, dtype) == values).all()
    assert (BACKEND.stored(out, dtype) == values).all()
    BACKEND.poison(out)
    assert np.isnan(dtype.widen(BACKEND.stored(out, dtype))).all()


@EACH
def test_the_flush_is_made_on_the_device_and_reads_what_it_kept(monkeypatch, kind):
    fake_place.on_host(monkeypatch)
    monkeypatch.setattr(host, "flusher", None)  # the host's would empty other caches
    made, sums = [], []
    for name in ("empty", "zeros"):
        there = getattr(torch, name)
        monkeypatch.setattr(torch, name, lambda *shape, there=there, **how: made.append(shape) or there(*shape, **how))
    monkeypatch.setattr(torch, "sum", lambda array, **_: sums.append(array.numel()))

    BACKEND.flusher(f"{kind}:0", 4000)()

    assert (made, sums) == ([(1000,), (1000,), ((),)], [1000])


@pytest.mark.parametrize("place", ["cuda:1", "xpu:1", "mps:0"])
def test_before_unused_memory_is_poisoned_a_gpu_gives_it_back(monkeypatch, place):
    part = fake_place.FakePart()
    name = place.partition(":")[0]
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(**{name: part}))

    torch_backend._empty_cache(SimpleNamespace(device=place))

    assert part.log == [("wait",) if name == "mps" else ("wait", place), "give back"]


@EACH
def test_no_graph_is_captured_there(part, kind):
    assert BACKEND.capture(lambda: part.log.append("call"), f"{kind}:0", 2) is None
    assert part.log == []


def test_dtypes_that_are_not_there_are_refused_with_those_that_are():
    found = {kind: {name: BACKEND.unsupported(DTYPES[name], made(kind)) for name in DTYPES} for kind in TORCH_KINDS}

    refused = {kind: {name for name, reason in reasons.items() if reason} for kind, reasons in found.items()}
    assert refused == {"rocm": {"tf32"}, "mps": {"tf32", "fp64"}, "xpu": {"tf32"}}
    assert found["mps"]["fp64"] == (
        "torch has no fp64 on Apple MPS; mps:0 (a made-up GPU of Apple MPS) supports fp32, bf16, fp16"
    )


@EACH
def test_every_library_but_torch_says_that_torch_runs_there(kind):
    device, dtype = made(kind), DTYPES["fp32"]
    others = {
        row.name: unsupported(operation, row, dtype, device)
        for operation in OPERATIONS.values()
        for row in operation.implementations
        if not row.backend.startswith("torch")
    }

    wrong = {name: why for name, why in others.items() if f"not on {kind}:0; `torch` runs there" not in (why or "")}
    assert wrong == {}
    matmul = operation_named("matmul")
    assert unsupported(matmul, matmul.implementation_named("torch"), dtype, device) is None


@pytest.mark.parametrize(("kind", "said"), [("rocm", "needs Triton on AMD ROCm"), ("xpu", "needs Triton on Intel XPU")])
def test_torch_compile_runs_where_triton_makes_kernels_and_not_on_mps(monkeypatch, kind, said):
    compiled, dtype = load_backend("torch_compile"), DTYPES["fp32"]
    monkeypatch.setattr(host, "is_installed", lambda *modules: False)
    assert said in compiled.unsupported(dtype, made(kind))
    monkeypatch.setattr(host, "is_installed", lambda *modules: True)
    assert compiled.unsupported(dtype, made(kind)) is None
    assert "mps" not in compiled.DEVICE_KINDS


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("rocm", "is not built for AMD ROCm"),
        ("xpu", "is not built for Intel XPU"),
        ("mps", "no longer finds a device of Apple MPS"),
    ],
)
def test_torch_that_does_not_find_the_device_any_more_says_why(kind, said):
    with pytest.raises(Unsupported, match=rf"torch 2\S+ {said}.*; a made-up GPU of"):
        device_for(BACKEND, made(kind))


@pytest.mark.parametrize(("kind", "name"), [("rocm", "hip"), ("xpu", "xpu")])
def test_a_build_that_finds_nothing_says_so(monkeypatch, part, kind, name):
    monkeypatch.setattr(torch.version, name, "6.4")
    part.is_available = lambda: False
    assert "no longer finds a device of" in BACKEND.driver_facts(f"{kind}:0").problem
    part.is_available = lambda: True
    assert BACKEND.driver_facts(f"{kind}:0").problem is None


def test_torch_for_amd_says_so_of_an_nvidia_gpu_and_takes_none_of_its_own_for_it(monkeypatch):
    fake_cuda.install(monkeypatch)  # its torch.cuda is available, as that of ROCm is
    monkeypatch.setattr(sys.modules["torch"].version, "hip", "6.4", raising=False)

    facts = BACKEND.driver_facts("cuda:0")

    assert "torch 2.13.0 is built for ROCm 6.4, which runs only on AMD GPUs" in facts.problem
    assert facts.uuid is None


def test_a_convolution_of_rocm_is_not_asked_of_cudnn(monkeypatch):
    monkeypatch.setattr(torch.version, "hip", "6.4")
    monkeypatch.setattr(torch_convolution, "cudnn", None)
    taken = []
    out = SimpleNamespace(is_cuda=True, set_=taken.append)  # as every array of a GPU of AMD is

    torch_convolution.build((torch.ones(1, 1, 4, 4), torch.ones(1, 1, 3, 3)), out, DTYPES["fp32"])()

    assert taken[0][0, 0, 1, 1] == 9


def test_a_triad_on_any_gpu_is_one_addition_without_a_number_of_the_host(monkeypatch):
    arrays = [torch.empty(3, device="meta") for _ in range(3)]
    monkeypatch.setattr(torch, "addcmul", None)
    added = []
    monkeypatch.setattr(torch, "add", lambda *_, **how: added.append(how["alpha"]))

    torch_elementwise.build(arrays[:2], arrays[2], DTYPES["fp32"])()

    assert added == [3]


@EACH
def test_a_case_may_take_all_the_memory_there_is_and_no_more(kind):
    device = made(kind, memory_bytes=1000)

    assert free_bytes(device) == 900
    with pytest.raises(TooLarge):
        check_memory(1001, free_bytes(device), device)
    assert free_bytes(made(kind)) is None


@pytest.mark.parametrize("kind", ["rocm", "mps"])  # timed by events, as xpu is, and by the host
def test_a_case_is_measured_there_from_arrays_to_flags(monkeypatch, kind):
    part = fake_place.on_host(monkeypatch)
    device = made(kind, notes=(TORCH_KINDS[kind].untried(f"{kind}:0"),))

    result = measured_there(case(size=16, on=device.id, implementation="torch"), device)

    assert (result.status, result.reason) == (Status.OK, None)
    assert result.environment.device.notes == device.notes
    told = {flag.name: flag.evidence for flag in result.flags}
    assert told["cold"].startswith("256 MiB overwritten before each call, and as many other bytes read: assumed")
    assert "emulated" not in told  # nothing states its units
    assert told.keys() & {"contention_unknown", "contended"}
    assert flush_bytes(device) == 2**28
    assert any(entry[0] == "wait" for entry in part.log)


@pytest.mark.parametrize(
    ("implementation", "dtype", "reason"),
    [
        ("numba-cuda", "fp32", "numba-cuda runs on cuda devices, not on mps:0; `torch` runs there"),
        ("numpy", "fp32", "numpy runs on cpu devices, not on mps:0; `torch` runs there"),
        ("torch", "fp64", "torch has no fp64 on Apple MPS"),
    ],
)
def test_what_does_not_run_there_ends_unsupported(implementation, dtype, reason):
    result = measured_there(case(size=16, on="mps:0", implementation=implementation, dtype=dtype), made("mps"))

    assert result.status is Status.UNSUPPORTED
    assert result.reason.startswith(reason)
