"""Every CUDA kernel compiles for every generation of GPU in use, without one, as well as recorded, and is right.

`make test` compiles a sample and whatever is made from other sources, or by another compiler, than compiled.json tells;
`make kernels`, which writes it, and `make ptx` compile them all.
"""

import re
import shutil

import pytest

from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.errors import InvalidInput, Unsupported
from gpuexplore.operations import OPERATIONS

pytest.importorskip("numba.cuda", reason="numba-cuda is not installed")
pytest.importorskip("cuda.core", reason="cuda.core, which brings nvJitLink, is not installed")

from gpuexplore.core.serialization import decode
from gpuexplore.kernels.files.machine_code import disassembled
from gpuexplore.kernels.sass import LoopFacts, main_loop, mix_of
from gpuexplore.operations.kernel_targets import (
    COMPUTE_CAPABILITIES,
    capabilities_for,
    compile_for,
    compile_for_each,
    kernel_of,
)
from gpuexplore.operations.matmul.numba_cuda import KERNEL as BEST_KERNEL
from gpuexplore.operations.matmul.numba_cuda import _step_for
from scripts import kernel_sources
from scripts.compiled_kernels import differences as differing
from scripts.compiled_kernels import elsewhere, facts, kernels, key
from scripts.kernel_sources import PACKAGE, digest, toolchain
from tests.kernels.ptx.launches import EXECUTED, is_right, launched, lengths_for
from tests.operations.changed import RECORD, is_changed, unless_changed
from tests.operations.shapes import simulated_shapes

MATMUL, CONV2D = OPERATIONS["matmul"], OPERATIONS["conv2d"]
AGAIN = "compiled.json does not tell of the kernels as they are: run make kernels, and look at what changed"
BEST = MATMUL.implementation_named("numba-cuda")  # made of other steps
USUAL = ("fp32", "tf32")
SAMPLE = ("matmul/numba-cuda-vector/fp32", "matmul/numba-cuda-tensorcore/fp16", "softmax/numba-cuda/fp32")  # always
CHECKED = (("8.0", "12.0"), ("9.0", "7.5"))  # of those that are recorded, each kernel in one of these pairs in rotation
OTHERWISE = "matmul/numba-cuda-tensorcore"  # which toolkit 13.0 compiles otherwise
SUMS_IN_MEMORY = ("10.0", "12.0")  # where toolkit 13.0 put the sums of a former kernel
SPILLED = {("batched_matmul/numba-cuda/tf32", capability) for capability in ("10.0", "10.3", "11.0")}  # 96 bytes
INSTRUCTIONS = {
    "matmul/numba-cuda-vector/fp32": ("ld.global.v4", "ld.shared.v4", "st.global.v4"),
    "matmul/numba-cuda-vector/fp64": ("ld.global.v2", "ld.shared.v2", "st.global.v2"),
    "matmul/numba-cuda-vector/fp16": ("ld.global.v4", "ld.shared.v4"),
    "matmul/numba-cuda-warptile/fp32": ("ld.global.v4", "ld.shared.v4", "st.global.v4"),
    "matmul/numba-cuda-warptile/fp64": ("ld.global.v2", "ld.shared.v2", "st.global.v2"),
    "matmul/numba-cuda-tensorcore/tf32": ("mma.sync.aligned.m16n8k8.row.col.f32.tf32", "ldmatrix", "cp.async"),
    "matmul/numba-cuda-tensorcore/bf16": ("mma.sync.aligned.m16n8k16.row.col.f32.bf16", "ldmatrix", "cp.async"),
    "matmul/numba-cuda-tensorcore/fp16": ("mma.sync.aligned.m16n8k16.row.col.f32.f16", "ldmatrix", "cp.async"),
    "conv2d/numba-cuda-tensorcore/bf16": ("mma.sync.aligned.m16n8k16.row.col.f32.bf16", "ldmatrix", "cp.async"),
    "conv2d/numba-cuda-tensorcore/fp16": ("mma.sync.aligned.m16n8k16.row.col.f32.f16", "ldmatrix", "cp.async"),
    "attention/numba-cuda/bf16": ("mma.sync.aligned.m16n8k16.row.col.f32.bf16", "ldmatrix", "cp.async", "bf16x2"),
    "attention/numba-cuda/fp16": ("mma.sync.aligned.m16n8k16.row.col.f32.f16", "ldmatrix", "cp.async", "f16x2"),
    "matmul/numba-cuda-wgmma/bf16": ("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16", "fence.proxy.async"),
    "matmul/numba-cuda-wgmma/fp16": ("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16", "fence.proxy.async"),
}
SENTENCES = {  # what the sentence on a kernel says of its main loop in fp32, and the loads and stores there
    "softmax/numba-cuda": ("four loads of 16 bytes in flight", {"LDG.128": 4}, {}),
    "layer_norm/numba-cuda": ("four loads of 16 bytes in flight", {"LDG.128": 4}, {}),
    "reduce_sum/numba-cuda": ("four loads of 16 bytes in flight", {"LDG.128": 8}, {}),  # LLVM unrolls it twice
    "matvec/numba-cuda": ("four loads of 16 bytes of the matrix in flight", {"LDG.128": 8}, {}),  # and four of x
    "vector_add/numba-cuda": ("four loads of 16 bytes in flight", {"LDG.128": 4}, {"STG.128": 2}),
    "multiply/numba-cuda": ("four loads of 16 bytes in flight", {"LDG.128": 4}, {"STG.128": 2}),
    "triad/numba-cuda": ("four loads of 16 bytes in flight", {"LDG.128": 4}, {"STG.128": 2}),
    "copy/numba-cuda": ("four loads of 16 bytes in flight", {"LDG.128": 4}, {"STG.128": 4}),
    "conv2d/numba-cuda": (
        "8 numbers read from the image for 512 multiply-adds",
        {"LDS.128": 32, "LDG.32": 8, "LDG.128": 1},
        {"STS.32": 12},
    ),
    "attention/numba-cuda-online": ("32 multiply-adds for three 128-bit loads", {"LDS.128": 12}, {}),
}

pytestmark = pytest.mark.long


def with_source(kernel):
    """Return the first kernel that has the source of this one and arrays with as many axes: itself, or another's."""
    operation, implementation, dtype = kernel
    shape = operation.shape_of_size(2)
    axes = [len(lengths) for lengths in (*operation.inputs(shape), operation.output(shape))]
    made = kernel_of(operation, implementation)
    step = _step_for(dtype) if made is BEST_KERNEL else made
    return SOURCES.setdefault((step, dtype, *axes), kernel)


def is_compiled_here(kernel):
    """Return whether `make test` compiles it: a changed one, in some dtypes; `make ptx` and `make kernels` do all."""
    return key(*kernel) in SAMPLE or (is_changed(*kernel[:2]) and is_one_of_the_chosen_dtypes(kernel))


def is_one_of_the_chosen_dtypes(kernel):
    """Return whether it is in fp32 or tf32, or in the other dtype that is chosen."""
    operation, implementation, dtype = kernel
    if dtype.name in USUAL:
        return True
    there = [each.name for row, step, each in kernels() if (row, step) == (operation, implementation)]
    others = [name for name in there if name not in USUAL]
    rows = [row for row in operation.implementations if row.geometry]
    return dtype.name == others[(len(operation.name) + rows.index(implementation)) % len(others)]


SOURCES = {}
COMPILED = [kernel for kernel in kernels() if with_source(kernel) == kernel]
IN_TURNS = [
    pytest.param(kernel, id=key(*kernel), marks=[] if is_compiled_here(kernel) else pytest.mark.ptx)
    for kernel in COMPILED
]


def test_every_changed_kernel_would_be_compiled_and_every_dtype_in_many(monkeypatch):
    monkeypatch.setitem(RECORD, "sources", {})
    always = [kernel for kernel in COMPILED if is_compiled_here(kernel)]

    assert {(row.name, step.name) for row, step, _ in always} == {(row.name, step.name) for row, step, _ in COMPILED}
    assert {dtype for *_, dtype in always} == {dtype for *_, dtype in COMPILED}


def test_every_kernel_has_a_digest_in_the_record_and_others_than_its_neighbours():
    rows = {f"{operation.name}/{implementation.name}" for operation, implementation, _ in kernels()}

    assert set(RECORD["sources"]) == rows, AGAIN
    assert len(set(RECORD["sources"].values())) == len(rows)


def copy_of_package(folder):
    """Return a copy of what kernels are made from, below a folder."""
    for name in ("core", "kernels", "operations"):
        shutil.copytree(PACKAGE / name, folder / "gpuexplore" / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder / "gpuexplore"


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """Return a copy that tests leave as it was."""
    return copy_of_package(tmp_path_factory.mktemp("package"))


LOOKED_AT = {
    name: (OPERATIONS[operation], OPERATIONS[operation].implementation_named(implementation))
    for name, operation, implementation in (
        ("softmax", "softmax", "numba-cuda"),
        ("copy", "copy", "numba-cuda"),
        ("naive", "vector_add", "numba-cuda-naive"),
        ("strided", "vector_add", "numba-cuda"),
    )
}
ADDED = ("", "\nA = 1\n")  # at the end
EVERY = set(LOOKED_AT)


@pytest.fixture(scope="module")
def digests(package):
    """Return the digests of some kernels as they are."""
    return {name: digest(*row, package) for name, row in LOOKED_AT.items()}


@pytest.mark.parametrize(
    ("changed", "edit", "others"),
    [
        (
            "operations/softmax/numba_cuda.py",
            ("registers[i] = narrow(beyond", "registers[i] = narrow(-beyond"),
            {"softmax"},
        ),
        ("operations/softmax/__init__.py", ADDED, {"softmax"}),
        ("operations/vector_add/numba_cuda.py", ("return left + right", "return right + left"), {"strided"}),  # not its
        ("operations/vector_add/numba_cuda.py", ("if i < out.size", "if i <= out.size"), {"naive"}),  # neighbour's
        (
            "kernels/intrinsics/warps.py",
            ADDED,
            {"softmax", "strided"},
        ),  # what the kernel calls, or what is in the file of that
        ("kernels/cuda_kernel.py", ADDED, EVERY),
        ("kernels/llvm_values.py", ADDED, EVERY),  # what those call
        ("core/dtypes.py", ADDED, EVERY),
        ("kernels/cuda_compile.py", ADDED, EVERY),
        ("kernels/ptx/__init__.py", ADDED, EVERY),  # what runs it
        ("kernels/sass/__init__.py", ADDED, EVERY),
        ("kernels/cuda_compile.py", ('"""A CUDA', '"""x A CUDA'), set()),  # a docstring
        ("kernels/cuda_compile.py", ("", "\n# x\n"), set()),  # a comment
        ("operations/softmax/__init__.py", (OPERATIONS["softmax"].about, "x y"), set()),  # a sentence
        (  # the same name from elsewhere
            "kernels/device_functions.py",
            ("from numba import cuda", "from numba.core import cuda"),
            {"softmax", "strided"},
        ),
    ],
)
def test_a_change_of_what_a_kernel_is_made_from_is_another_digest(package, digests, changed, edit, others):
    path = package / changed
    text = path.read_text(encoding="utf-8")
    old, new = edit
    edited = text.replace(old, new, 1) if old else text + new
    assert edited != text
    path.write_text(edited, encoding="utf-8")
    try:
        assert {name for name, row in LOOKED_AT.items() if digest(*row, package) != digests[name]} == others
    finally:
        path.write_text(text, encoding="utf-8")


def test_moved_file_is_no_other_digest(tmp_path):
    package = copy_of_package(tmp_path)
    before = digest(*LOOKED_AT["softmax"], package)
    (package / "kernels/device_functions.py").rename(package / "kernels/moved.py")
    for path in package.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("kernels.device_functions", "kernels.moved"), encoding="utf-8")

    assert digest(*LOOKED_AT["softmax"], package) == before


def test_another_version_of_the_compiler_is_another_digest(monkeypatch):
    row = LOOKED_AT["softmax"]
    before = digest(*row)
    monkeypatch.setattr(kernel_sources, "toolchain", lambda: toolchain() | {"nvidia-nvvm": "1.0"})

    assert digest(*row) != before


def test_kernel_of_the_same_source_is_recorded_alike():
    others = [kernel for kernel in kernels() if kernel not in COMPILED]

    assert {f"{operation.name}/{implementation.name}" for operation, implementation, _ in others} == {
        "matmul/numba-cuda",
        "linear/numba-cuda",
        "linear/numba-cuda-warptile",
    }
    for kernel in others:
        assert RECORD["kernels"][key(*kernel)] == RECORD["kernels"][key(*with_source(kernel))]


@pytest.mark.parametrize(
    ("operation", "step"),
    [
        *(pytest.param(MATMUL, row, id=row.name) for row in MATMUL.implementations if row.rung and row.geometry),
        pytest.param(CONV2D, CONV2D.implementation_named("numba-cuda-tensorcore"), id="convolution"),
    ],
)
def test_sentence_on_a_step_tells_how_much_of_its_main_loop_multiplies(operation, step):
    dtype = "bf16" if "bf16" in step.on_matrix_units else "fp32"
    loop = decode(LoopFacts, RECORD["kernels"][f"{operation.name}/{step.name}/{dtype}"]["9.0"]["main_loop"])

    assert f"{100 * loop.multiply_add_share:.0f} % of the main loop" in step.about


def test_no_kernel_keeps_anything_of_a_thread_in_memory_on_any_gpu_but_those_that_are_known():
    recorded = [RECORD["kernels"], *(other["kernels"] for other in RECORD["others"])]
    found = {
        (name, capability)
        for kernels_there in recorded
        for name, by_capability in kernels_there.items()
        for capability, facts_there in by_capability.items()
        if facts_there["local_bytes"] or facts_there["spill_bytes"]
    }

    assert found == SPILLED


@pytest.mark.parametrize("kernel", IN_TURNS)
def test_kernel_compiles_for_every_gpu_as_recorded_and_computes_the_right_numbers(subtests, kernel):
    operation, implementation, dtype = kernel
    capabilities = checked(kernel)
    made = list(compile_for_each(operation, implementation, dtype, None, capabilities))

    for target in made:
        expect_one_kernel_in_its_own_format(target, dtype)
        assert target.spill_bytes == 0, f"{target.compute_capability}: registers are spilled"
        assert target.local_bytes == 0, f"{target.compute_capability}: an array of each thread is in memory"
        assert [text for text in INSTRUCTIONS.get(key(*kernel), ()) if text not in target.ptx] == []
    with subtests.test("executed"):
        expect_right_numbers(kernel, made)
    with subtests.test("as its sentence says"):
        expect_what_its_sentence_says(kernel, made)
    with subtests.test("as recorded"):
        if RECORD["toolchain"] != toolchain():
            pytest.skip(f"compiled.json was made with {RECORD['toolchain']}, here is {toolchain()}")
        recorded = RECORD["kernels"].get(key(*kernel), {})
        assert differences(recorded, facts(made)) == [], AGAIN


def checked(kernel):
    """Return the targets that a kernel is compiled for here: 8.0 or 9.0, where it is run, and another."""
    there, index = capabilities_for(*kernel), [key(*each) for each in kernels()].index(key(*kernel))
    pairs = [[each for each in pair if each in there] for pair in CHECKED]
    chosen = pairs[index % 2]
    return chosen if set(chosen) & set(EXECUTED) else pairs[1 - index % 2]


def expect_right_numbers(kernel, made):
    """Run the PTX for one target at one awkward shape: kernels and dtypes take targets and shapes in rotation."""
    index = [key(*each) for each in kernels()].index(key(*kernel))
    target = next(each for each in made if each.compute_capability in EXECUTED)
    _, *awkward = lengths_for(key(*kernel))
    for_its_tiles = len(awkward) >= len(simulated_shapes(kernel[0]))
    lengths = awkward[-1] if for_its_tiles else awkward[index // 2 % len(awkward)]
    report, accuracy = launched(key(*kernel), lengths, target.ptx, target.compute_capability)

    assert report.faults == (), (lengths, target.compute_capability)
    assert is_right(report, accuracy), (lengths, target.compute_capability, accuracy)


def expect_what_its_sentence_says(kernel, made):
    operation, implementation, dtype = kernel
    phrase, loads, stores = SENTENCES.get(f"{operation.name}/{implementation.name}", ("", {}, {}))
    assert phrase in implementation.about
    for target in made if phrase and dtype.name == "fp32" else ():
        if target.compute_capability in EXECUTED:
            mix = mix_of(main_loop(disassembled(target.cubin)))
            assert (mix.loads, mix.stores) == (loads, stores)  # none of local memory, so no spills
            if operation.name == "attention":
                assert mix.multiply_adds == 32 / 3 * loads["LDS.128"]
            if operation.name == "conv2d":
                assert mix.multiply_adds >= 512
                assert 0.7 <= mix.multiply_add_share <= 0.75


@pytest.mark.parametrize(
    "capability", [pytest.param(capability, marks=unless_changed("attention")) for capability in EXECUTED]
)
def test_sentence_on_attention_tells_what_its_tensor_cores_do(capability):
    attention = OPERATIONS["attention"]
    kernel = attention.implementation_named("numba-cuda")
    made = compile_for(attention, kernel, DTYPES["bf16"], None, capability)
    loop = main_loop(disassembled(made.cubin))
    mix = mix_of(loop)

    assert "40 loads for 128 products" in kernel.about
    assert (mix.loads["LDSM.128"], mix.tensor, made.spill_bytes) == (40, 128, 0)
    assert f"{100 * mix.tensor / len(loop):.0f} % of the main loop are HMMA" in kernel.about


def expect_one_kernel_in_its_own_format(made, dtype):
    """A Python float in a kernel is a double: on most cards it would run 32 or 64 times slower."""
    lines = made.ptx.splitlines()
    assert f".target {made.target}" in lines
    assert sum(".visible .entry" in line for line in lines) == 1
    assert dtype.name == "fp64" or not re.search(r"\.f64\b", made.ptx)


def differences(recorded, found):
    """Return what changed, each as `8.0 registers_per_thread: 40 -> 48`; scripts.compiled_kernels records it anew."""
    return [
        f"{capability} {what}: {recorded.get(capability, {}).get(what)} -> {value}"
        for capability, values in found.items()
        for what, value in values.items()
        if recorded.get(capability, {}).get(what) != value
    ]


def test_other_toolkit_that_make_installs_is_the_recorded_one(repository):
    pinned = dict(re.findall(r"(nvidia-[\w-]+)==([\d.]+)", (repository / "Makefile").read_text(encoding="utf-8")))
    (recorded,) = RECORD["others"]

    assert pinned
    assert {name: pinned.get(name) for name in ("nvidia-nvvm", "nvidia-nvjitlink")} == {
        name: recorded["toolchain"][name] for name in ("nvidia-nvvm", "nvidia-nvjitlink")
    }, AGAIN


@pytest.mark.parametrize("name", [pytest.param(OTHERWISE, marks=unless_changed(*OTHERWISE.split("/")))])
def test_toolkit_that_torch_brings_makes_what_is_recorded_of_it(repository, name):
    python = repository / ".venv" / "cuda130" / "bin" / "python"
    if not python.exists():
        pytest.skip("make installs it: .venv/cuda130")
    (recorded,) = RECORD["others"]

    found = elsewhere(str(python), "--only", name, "--targets", *SUMS_IN_MEMORY)

    assert found["toolkit"] == recorded["toolkit"] == "13.0"
    assert {name: tuple(made) for name, made in found["kernels"].items()} == {
        f"{name}/{dtype}": SUMS_IN_MEMORY for dtype in ("tf32", "bf16", "fp16")
    }
    assert [name for name, made in found["kernels"].items() if any(each["local_bytes"] for each in made.values())] == []
    if RECORD["toolchain"] == toolchain():
        expected = {
            name: {
                target: made for target, made in recorded["kernels"].get(name, {}).items() if target in SUMS_IN_MEMORY
            }
            for name in found["kernels"]
        }
        assert differing(RECORD["kernels"], found["kernels"]) == {
            name: made for name, made in expected.items() if made
        }, AGAIN


def test_record_holds_exactly_the_kernels_there_are():
    assert list(RECORD["kernels"]) == [key(*kernel) for kernel in kernels()], AGAIN
    for operation, implementation, dtype in kernels():
        recorded = RECORD["kernels"][key(operation, implementation, dtype)]
        assert tuple(recorded) == capabilities_for(operation, implementation, dtype)


def test_a_register_more_would_be_seen():
    recorded = {"8.0": {"registers_per_thread": 40, "spill_bytes": 0}}

    assert differences(recorded, {"8.0": {"registers_per_thread": 41, "spill_bytes": 0}}) == [
        "8.0 registers_per_thread: 40 -> 41"
    ]
    assert differences({}, recorded) == ["8.0 registers_per_thread: None -> 40", "8.0 spill_bytes: None -> 0"]


def test_steps_whose_instructions_are_looked_for_are_compiled():
    assert set(INSTRUCTIONS) <= {key(*kernel) for kernel in kernels()}


@pytest.mark.parametrize("capability", ["3.7", "7.0", "99.0"])
def test_gpu_the_compiler_does_not_know_is_answered_with_a_sentence(capability):
    with pytest.raises(
        Unsupported, match=rf"CUDA \d+\.\d+ .* does not compile for compute capability {capability}, but for 7.5, 8"
    ):
        compile_for(MATMUL, MATMUL.implementation_named("numba-cuda-naive"), DTYPES["fp32"], None, capability)


def test_kernel_that_does_not_exist_is_answered_with_a_sentence():
    tensor_cores = MATMUL.implementation_named("numba-cuda-tensorcore")
    with pytest.raises(Unsupported, match="has code for tf32, bf16, fp16 only"):
        compile_for(MATMUL, tensor_cores, DTYPES["fp32"], None, "8.0")
    with pytest.raises(
        Unsupported, match=r"needs compute capability 8\.0; the target has 7\.5; use numba-cuda-warptile"
    ):
        compile_for(MATMUL, MATMUL.implementation_named("numba-cuda"), DTYPES["bf16"], None, "7.5")
    with pytest.raises(InvalidInput, match="block '7': expected"):
        compile_for(MATMUL, tensor_cores, DTYPES["bf16"], (7,), "8.0")


def test_best_step_is_compiled_from_the_step_that_is_best_for_the_dtype():
    steps = {"fp64": "warptile", "fp32": "warptile", "tf32": "tensorcore", "bf16": "tensorcore", "fp16": "tensorcore"}
    assert set(steps) == {dtype.name for _, implementation, dtype in kernels() if implementation is BEST}
    best = kernel_of(MATMUL, BEST)
    for dtype, name in ((DTYPES[name], f"numba-cuda-{step}") for name, step in steps.items()):
        step = kernel_of(MATMUL, MATMUL.implementation_named(name))
        block = best.geometry.checked(None)
        assert block == step.geometry.checked(None)
        assert best.make(dtype, block).__code__ is step.make(dtype, block).__code__
        assert best.jit_options(dtype, block) == step.jit_options(dtype, block)
        assert best.geometry is step.geometry
        assert best.dynamic_shared_bytes(dtype, block) == step.dynamic_shared_bytes(dtype, block)
        assert capabilities_for(MATMUL, BEST, dtype)[-1] == COMPUTE_CAPABILITIES[-1]
