"""One test over all backends: whatever library is added keeps the same promises."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest
import torch

from gpuexplore.backends import BACKENDS, Backend, host, load_backend, numba_cpu
from gpuexplore.backends.cuda_driver import index_in_this_process
from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.errors import InvalidInput, Unsupported
from gpuexplore.hardware import GPU_KINDS
from gpuexplore.measure.candidates.candidate import unsupported
from gpuexplore.operations import OPERATIONS
from tests.analysis.made import environment
from tests.measure.fakes import CPU, GPU, FakeClock
from tests.unchanged import heavy_with
from tests.waiting import DEADLINE_S

LIBRARIES = {
    "numba_cpu": "numba",
    "numba_cuda": "numba",
    "torch_compile": "torch",
    "numpy_returned": "numpy",
}  # of another name than the backend
OPTIONAL = {  # what a checkout does not install
    name
    for name in BACKENDS
    if all(
        implementation.optional
        for operation in OPERATIONS.values()
        for implementation in operation.implementations
        if implementation.backend == name
    )
}
HERE = [
    name
    for name in BACKENDS
    if "cpu" in load_backend(name).DEVICE_KINDS
    and load_backend(name).is_available()
    and load_backend(name).unsupported(DTYPES["fp32"], CPU) is None
]
EACH = pytest.mark.parametrize("name", BACKENDS)
EACH_HERE = pytest.mark.parametrize("name", HERE)
EACH_DTYPE = pytest.mark.parametrize("dtype", [row for row in DTYPES.values() if not row.matrix_only], ids=str)
VALUES = np.array([[0.0, -0.0, 1.0], [-2.5, 1 / 3, 65504.0]])


@EACH
def test_backend_offers_everything_the_contract_names(name):
    backend = load_backend(name)
    promised = [var for var in vars(Backend) if not var.startswith("_")]

    assert [name for name in promised if not callable(getattr(backend, name))] == []
    assert backend.INSTALL.startswith("pip install ")
    assert set(backend.DEVICE_KINDS) <= {"cpu", *GPU_KINDS}


@EACH
def test_backend_is_available_where_its_library_is_and_tells_its_version(name):
    backend, library = load_backend(name), LIBRARIES.get(name, name)
    installed = find_spec(library) is not None

    assert installed or name in OPTIONAL, "a checkout installs it"
    assert backend.is_available() == installed
    assert any(told.startswith(library) for told in backend.versions()) == installed
    assert all(isinstance(version, str) and version for version in backend.versions().values())


@EACH_HERE
@EACH_DTYPE
def test_values_come_back_from_the_device_as_they_were_rounded(name, dtype):
    backend, stored = load_backend(name), dtype.round(VALUES)
    assert backend.unsupported(dtype, CPU) is None

    back = dtype.widen(backend.stored(backend.to_device(stored, dtype, "cpu"), dtype))

    assert back.dtype == np.float64
    np.testing.assert_array_equal(back, dtype.widen(stored))
    np.testing.assert_array_equal(np.signbit(back), np.signbit(VALUES))


@EACH_HERE
@EACH_DTYPE
def test_device_array_is_a_copy_in_c_order(name, dtype):
    backend, stored = load_backend(name), dtype.round(VALUES.T)

    array = backend.to_device(stored, dtype, "cpu")
    stored[:] = 0

    np.testing.assert_array_equal(dtype.widen(backend.stored(array, dtype)), dtype.widen(dtype.round(VALUES.T)))
    if hasattr(array, "flags"):
        assert array.flags.c_contiguous
    elif hasattr(array, "is_contiguous"):
        assert array.is_contiguous()


@EACH_HERE
@EACH_DTYPE
def test_array_can_be_loaded_with_other_values(name, dtype):
    backend, stored = load_backend(name), dtype.round(VALUES)
    array = backend.to_device(dtype.round(np.zeros_like(VALUES)), dtype, "cpu")

    backend.load(array, stored)

    np.testing.assert_array_equal(backend.stored(array, dtype).view(np.uint8), stored.view(np.uint8))


@EACH_HERE
@EACH_DTYPE
def test_poison_leaves_nan_everywhere(name, dtype):
    backend = load_backend(name)
    array = backend.empty((3, 5), dtype, "cpu")

    backend.poison(array)

    assert dtype.widen(backend.stored(array, dtype)).shape == (3, 5)
    assert np.isnan(dtype.widen(backend.stored(array, dtype))).all()


@EACH_HERE
def test_timer_of_a_cpu_reads_the_clock_it_was_given(name):
    backend, clock = load_backend(name), FakeClock(tick_ns=10)

    samples = backend.timer("cpu", clock).sample(lambda: clock.spend(1e-6), calls=2, flush=None)

    assert samples == pytest.approx([1.005e-6])


@EACH_HERE
@pytest.mark.parametrize("size_bytes", [0, 8_000])
def test_flusher_overwrites_as_many_bytes_as_it_is_told(monkeypatch, name, size_bytes):
    buffers = []
    monkeypatch.setattr(host.np, "zeros", lambda *shape, **of: buffers.append(np.ones(*shape, **of)) or buffers[0])
    backend = load_backend(name)
    flush = backend.flusher("cpu", size_bytes)
    buffers[0][:] = np.nan

    flush()
    backend.synchronize("cpu")

    assert buffers[0].nbytes >= size_bytes
    assert not np.isnan(buffers[0]).any()


def threads_of(name):
    """Return how many CPU threads a library computes with."""
    if name in ("numpy", "numpy_returned"):
        pools = pytest.importorskip("threadpoolctl").threadpool_info()
        return {pool["num_threads"] for pool in pools if "numpy" in pool["filepath"]}
    return {import_module(LIBRARIES.get(name, name)).get_num_threads()}


@EACH_HERE
def test_threads_are_those_that_were_set(name):
    backend, before = load_backend(name), threads_of(name)
    for count in (1, *before):
        backend.set_threads(count)

        assert threads_of(name) == {count}


@EACH_HERE
def test_tf32_needs_a_gpu(name):
    reason = load_backend(name).unsupported(DTYPES["tf32"], CPU)

    assert reason == "tf32 exists only inside a GPU's matrix units; a made-up CPU has none"


def test_tf32_of_torch_needs_tensor_cores_that_have_it():
    torch = load_backend("torch")

    assert "compute capability 8.0" in torch.unsupported(DTYPES["tf32"], GPU)
    assert torch.unsupported(DTYPES["bf16"], GPU) is None


def test_tf32_is_not_for_kernels_without_tensor_cores():
    operation = OPERATIONS["matvec"]

    assert "tensor cores" in unsupported(operation, operation.implementation_named("numba-cuda"), DTYPES["tf32"], GPU)


@pytest.mark.parametrize(("name", "line"), [("triton", "pip install triton"), ("cupy", "pip install cupy-cuda13x")])
def test_optional_library_that_is_absent_says_how_to_install_it(monkeypatch, name, line):
    monkeypatch.setattr(host, "is_installed", lambda *modules: name not in modules)
    operation = OPERATIONS["matmul"]

    reason = unsupported(operation, operation.implementation_named(name), DTYPES["fp32"], GPU)

    assert reason == f"{name} is not installed: {line}"


def test_optional_libraries_are_for_cuda_only():
    operation = OPERATIONS["matmul"]
    for name in ("triton", "cupy"):
        reason = unsupported(operation, operation.implementation_named(name), DTYPES["fp32"], CPU)

        assert reason == f"{name} runs on cuda devices, not on cpu"


def test_cupy_leaves_out_tf32_and_bf16():
    cupy = load_backend("cupy")

    assert "CUPY_TF32" in cupy.unsupported(DTYPES["tf32"], GPU)
    assert "version 14" in cupy.unsupported(DTYPES["bf16"], GPU)
    assert cupy.unsupported(DTYPES["fp16"], GPU) is None


@pytest.mark.parametrize(("capability", "old"), [("7.5", True), ("8.0", False), ("8.9", False), ("12.0", False)])
def test_triton_needs_a_gpu_of_this_decade(capability, old):
    reason = load_backend("triton").unsupported(DTYPES["fp32"], replace(GPU, compute_capability=capability))

    assert reason == (f"Triton needs compute capability 8.0; a made-up GPU has {capability}" if old else None)


def test_torch_compile_needs_a_compiler_for_the_device(monkeypatch, tmp_path):
    torch_compile = load_backend("torch_compile")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(host, "is_installed", lambda *modules: "triton" not in modules)

    wanted = "torch.compile needs a C++ compiler on a CPU, but g++ was not found"
    assert torch_compile.unsupported(DTYPES["fp32"], CPU) == wanted
    assert torch_compile.unsupported(DTYPES["fp32"], GPU) == "torch.compile needs Triton on CUDA: pip install triton"
    assert "tf32 exists only inside" in torch_compile.unsupported(DTYPES["tf32"], CPU)


def test_torch_compile_takes_the_compiler_that_cxx_names(monkeypatch, tmp_path):
    compiler = tmp_path / "my-c++"
    compiler.touch(mode=0o755)
    monkeypatch.setenv("CXX", str(compiler))

    assert load_backend("torch_compile").unsupported(DTYPES["fp32"], CPU) is None


def test_numpy_needs_ml_dtypes_for_bf16(monkeypatch):
    monkeypatch.setattr(host, "is_installed", lambda *modules: False)
    numpy = load_backend("numpy")

    assert numpy.unsupported(DTYPES["bf16"], CPU) == "NumPy has no bf16: pip install ml_dtypes"
    assert numpy.unsupported(DTYPES["fp16"], CPU) is None
    assert set(numpy.versions()) == {"numpy", "numpy_vectors"}


def test_numpy_without_threadpoolctl_pins_threads_by_openblas_itself(monkeypatch):
    monkeypatch.setattr(host, "is_installed", lambda *modules: False)
    threadpoolctl = pytest.importorskip("threadpoolctl")
    numpy = load_backend("numpy")

    for count in (2, 1):
        numpy.set_threads(count)
        pools = [pool for pool in threadpoolctl.threadpool_info() if "numpy" in pool["filepath"]]
        assert [pool["num_threads"] for pool in pools] == [count]


def test_numpy_whose_threads_cannot_be_pinned_is_unsupported_unless_the_environment_pins_them(monkeypatch):
    numpy = load_backend("numpy")
    monkeypatch.setattr(host, "is_installed", lambda *modules: False)
    monkeypatch.setattr(numpy, "OPENBLAS_PIN", "no_such_function")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")

    numpy.set_threads(3)
    with pytest.raises(Unsupported, match="pip install threadpoolctl"):
        numpy.set_threads(2)


def test_numba_cannot_have_more_threads_than_it_started_with():
    with pytest.raises(Unsupported, match="1025 threads: Numba started with"):
        numba_cpu.set_threads(1025)


def test_unknown_backend_is_answered_with_the_known_ones():
    with pytest.raises(InvalidInput, match="backend 'fortran': expected numpy, numpy_returned, numba_cpu"):
        load_backend("fortran")


def test_missing_library_is_no_error_until_it_is_used():
    assert not host.is_installed("no_such_library")
    assert not host.is_installed("no_such_library.part")
    assert host.version_of("no-such-library") is None


@pytest.mark.parametrize(
    ("visible", "device", "index"),
    [
        ("", "cuda:1", 1),
        ("GPU-1234", "cuda:1", 0),
        ("3", "cuda:3", 0),
        ("0,1", "cuda:1", 1),
        ("2,", "cuda:2", 0),
    ],
)
def test_worker_with_one_visible_device_sees_it_as_the_first(monkeypatch, visible, device, index):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)

    assert index_in_this_process(device) == index


def test_device_is_counted_as_it_is_without_a_selection(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    assert index_in_this_process("cuda:2") == 2


SIMULATED = """
import json
import numpy as np
from gpuexplore.backends import load_backend
from gpuexplore.core.dtypes import DTYPES
backend, found = load_backend("numba_cuda"), {}
values = np.array([[0.0, 1.0, -2.5], [1 / 3, 7.0, 65504.0]])
for dtype in (row for row in DTYPES.values() if not row.matrix_only):
    stored = dtype.round(values)
    array = backend.to_device(stored.T, dtype, "cuda:0")
    kept = bool((dtype.widen(backend.stored(array, dtype)) == dtype.widen(stored).T).all())
    backend.poison(array)
    found[dtype.name] = [kept, bool(np.isnan(dtype.widen(backend.stored(array, dtype))).all())]
backend.flusher("cuda:0", 1000)()
backend.set_threads(1)
backend.synchronize("cuda:0")
timer = backend.timer("cuda:0", lambda: 0)
samples = timer.sample(lambda: None, calls=3, flush=None)
print(json.dumps({"dtypes": found, "samples": len(samples), "per_call": timer.one_sample_per_call}))
"""


@pytest.mark.long
def test_numba_cuda_keeps_the_contract_in_the_simulator(repository):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SIMULATED],
        cwd=repository,
        env=os.environ | {"NUMBA_ENABLE_CUDASIM": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)

    assert told["dtypes"] == {name: [True, True] for name in ("fp64", "fp32", "bf16", "fp16")}
    assert (told["samples"], told["per_call"]) == (3, True)


@EACH
def test_reason_for_slow_products_is_half_a_sentence_or_none(name):
    said = load_backend(name).slow_product(DTYPES["fp32"], environment())

    assert said is None or (said and not said.endswith("."))


def test_numpy_tells_the_vectors_it_found_and_the_kernel_of_its_blas():
    told = load_backend("numpy").versions()

    assert set(told) >= {"numpy", "numpy_blas", "numpy_vectors"}


AVX512_UNUSED = "OpenBLAS chose its {} kernel, though the CPU has AVX-512; start with OPENBLAS_CORETYPE=SkylakeX"


@pytest.mark.parametrize(
    ("kernel", "vectors", "reason"),
    [
        ("Haswell", "X86_V3 X86_V4", AVX512_UNUSED.format("Haswell")),
        ("Zen", "AVX512F AVX512CD AVX512_SKX", AVX512_UNUSED.format("Zen")),
        ("SkylakeX", "X86_V3 X86_V4", None),
        ("Cooperlake", "X86_V3 X86_V4", None),
        ("Haswell", "X86_V3", None),
        ("neoversen1", "ASIMD ASIMDHP", "OpenBLAS computes it with its neoversen1 kernel"),
    ],
)
def test_avx512_kernel_is_advised_only_where_it_would_run_and_does_not(kernel, vectors, reason):
    versions = {"numpy_blas": f"openblas 0.3.31.188.0 {kernel}", "numpy_vectors": vectors}
    said = load_backend("numpy").slow_product(DTYPES["fp32"], replace(environment(), libraries=versions))

    assert said == reason


@pytest.mark.long  # loads Inductor
@pytest.mark.parametrize("module", ["compile_fx", "fx_passes.fuse_attention"])
def test_torch_compile_is_not_told_to_allow_tf32_for_fp32(monkeypatch, module):
    """Inductor's own warning, as a GPU with TF32 gets it; pytest takes every warning for an error."""
    from gpuexplore.backends import inductor

    inductor.compiled(torch.mm)
    hint = import_module(f"torch._inductor.{module}")._warn_tf32_disabled.__wrapped__
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))

    hint()

    with pytest.warns(UserWarning, match="TensorFloat32"):  # which takes the filters away
        hint()


COMPILER_LOADED = """
import torch
from gpuexplore.operations import OPERATIONS, load_build

operation = OPERATIONS["{}"]
load_build(operation, operation.implementation_named("torch-compile"))
seed = torch.manual_seed
torch.compile(torch.mm)
import torch._dynamo
print(torch.manual_seed is seed)
"""


@pytest.mark.long
@pytest.mark.parametrize(
    "operation",
    [
        "matmul",
        *(
            pytest.param(name, marks=heavy_with(row, row.implementation_named("torch-compile")))
            for name, row in ((name, OPERATIONS[name]) for name in ("softmax", "mlp_step"))
        ),
    ],
)
def test_torchs_compiler_is_loaded_with_what_it_compiles(operation):
    """It replaces torch.manual_seed, which a kernel that is watched by then must not do."""
    done = subprocess.run(
        [sys.executable, "-c", COMPILER_LOADED.format(operation)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "True\n"
