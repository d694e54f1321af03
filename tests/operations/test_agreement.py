"""Every implementation of every operation agrees with the float64 reference, in every dtype, at awkward sizes."""

from itertools import product

import pytest

from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.model import Case, Options, Shape
from gpuexplore.hardware.cpu import cpu_device
from gpuexplore.measure.candidates.candidate import build_candidate, unsupported
from gpuexplore.measure.check.elements import judge
from gpuexplore.measure.check.inputs import Reference, make_inputs
from gpuexplore.measure.check.spot_checks import checked
from gpuexplore.measure.runner import open_group
from gpuexplore.operations import OPERATIONS
from tests.measure.fakes import CPU as MADE_UP_CPU
from tests.measure.fakes import QUIET, FakeClock
from tests.operations.shapes import awkward_shapes
from tests.unchanged import heavy_with

CPU = cpu_device()
CPU_LADDER = {"numba-cpu", *(f"numba-cpu-{step}" for step in ("naive", "reordered", "blocked", "vector"))}
CUDA_STEPS = ("naive", "coalesced", "shared", "register", "vector", "warptile", "tensorcore", "wgmma")
CUDA_LADDER = {f"numba-cuda-{step}" for step in CUDA_STEPS}
ALWAYS = {("vector_add", "fp32"), ("softmax", "bf16"), ("matmul", "fp32")}  # each is seconds of compiling
TRAINING = {"mlp_step", "cnn_step", "transformer_step", "optimizer_step"}  # on CUDA through torch only
ON_CUDA_ONLY = {"numba-cuda", "numba-cuda-online", "triton", "cupy", "torch-autotune"} | CUDA_LADDER


def combinations(*, here, optional=(False, True)):
    """Return operation, implementation and dtype of those that run on this CPU, or of those that do not."""
    return [
        pytest.param(operation, implementation, dtype, id=f"{operation.name}-{implementation.name}-{dtype.name}")
        for operation in OPERATIONS.values()
        for implementation, dtype in product(operation.implementations, DTYPES.values())
        if implementation.optional in optional and (unsupported(operation, implementation, dtype, CPU) is None) == here
    ]


def expect_agreement(operation, implementations, dtype, shapes):
    """All implementations compute from the same numbers, and are compared with one reference."""
    wrong = []
    for shape in shapes:
        cases = [
            Case(operation.name, shape, dtype.name, each.name, "cpu", Options(threads=2)) for each in implementations
        ]
        group = open_group(cases, CPU, clock=FakeClock(), isolation=QUIET)
        wrong += [f"{case.implementation} at {shape}" for case in cases if not is_right(case, operation, group)]
    assert wrong == []


def is_right(case, operation, group):
    """Return whether one run of a case writes what the reference of its group expects."""
    inputs = group.checked_reference.inputs
    candidate = build_candidate(case, operation, CPU, inputs=inputs, clock=group.clock)
    candidate.poison()
    candidate.run()
    return checked(candidate, group, group.checked_reference).within


def by_operation_and_dtype(combinations):
    """Return operation, dtype and the implementations that run there, one row for those that share a reference.

    All but a few are heavy.
    """
    rows = {}
    for operation, implementation, dtype in (combination.values for combination in combinations):
        rows.setdefault((operation.name, dtype.name), []).append(implementation)
    return [
        pytest.param(
            OPERATIONS[operation],
            DTYPES[dtype],
            implementations,
            id=f"{operation}-{dtype}",
            marks=[] if (operation, dtype) in ALWAYS else heavy_with(OPERATIONS[operation], *implementations),
        )
        for (operation, dtype), implementations in rows.items()
    ]


@pytest.mark.long
@pytest.mark.parametrize(
    ("operation", "dtype", "implementations"),
    by_operation_and_dtype(combinations(here=True, optional=[False])),
)
def test_implementations_agree_with_the_reference_at_awkward_sizes(operation, dtype, implementations):
    expect_agreement(operation, implementations, dtype, awkward_shapes(operation))


COMPILED = [
    pytest.param(operation, implementation, dtype, id=row.id, marks=heavy_with(operation, implementation))
    for row in combinations(here=True, optional=[True])
    for operation, implementation, dtype in [row.values]
    if dtype.name == "bf16"
]


@pytest.mark.long  # a compilation takes seconds: one dtype at one size
@pytest.mark.parametrize(("operation", "implementation", "dtype"), COMPILED)
def test_compiled_implementation_agrees_with_the_reference(monkeypatch, repository, operation, implementation, dtype):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(repository / ".pytest_cache" / "inductor"))

    expect_agreement(operation, [implementation], dtype, awkward_shapes(operation)[-1:])


@pytest.mark.parametrize(
    ("operation", "implementation", "dtype", "reason"),
    [
        ("matmul", "numba-cuda", "fp32", "numba-cuda runs on cuda devices, not on cpu"),
        ("matmul", "numba-cuda-tensorcore", "tf32", "numba-cuda-tensorcore runs on cuda devices, not on cpu"),
        ("softmax", "triton", "bf16", "triton runs on cuda devices, not on cpu"),
        ("conv2d", "torch-autotune", "fp32", "torch-autotune runs on cuda devices, not on cpu"),
        ("matmul", "numpy", "tf32", "tf32 exists only inside a GPU's matrix units; a made-up CPU has none"),
        ("linear", "torch", "tf32", "tf32 exists only inside a GPU's matrix units; a made-up CPU has none"),
        ("softmax", "torch", "tf32", "tf32 exists only inside matrix units, but softmax is not a matmul"),
        ("mlp_step", "torch-autocast", "fp32", "torch-autocast has code for bf16, fp16 only"),
        ("triad", "numba-cpu", "tf32", "tf32 exists only inside matrix units, but triad is not a matmul"),
    ],
)
def test_combination_that_does_not_run_on_a_cpu_says_why(operation, implementation, dtype, reason):
    contract = OPERATIONS[operation]

    assert unsupported(contract, contract.implementation_named(implementation), DTYPES[dtype], MADE_UP_CPU) == reason


def test_only_cuda_implementations_and_tf32_do_not_run_on_a_cpu():
    left_out = {
        (implementation.name, dtype.name)
        for operation, implementation, dtype in (combination.values for combination in combinations(here=False))
        if implementation.name != "torch-compile"  # where there is no compiler
        if not implementation.dtypes or dtype.name in implementation.dtypes
    }

    assert {name for name, dtype in left_out if dtype != "tf32"} == ON_CUDA_ONLY
    assert {name for name, _ in left_out} == ON_CUDA_ONLY | {
        "numpy",
        "torch",
        "torch-checkpoint",
        "torch-accumulate",
        *CPU_LADDER,
    }


def test_a_kernel_that_leaves_out_the_edge_of_its_grid_would_be_seen():
    """What the checks above rest on: one unwritten element, or one in error, is not forgiven."""
    operation, shape, dtype = OPERATIONS["matmul"], Shape.of(m=17, k=33, n=17), DTYPES["fp32"]
    reference = Reference(operation, dtype, make_inputs(operation, shape, dtype, "normal"))
    right = reference.parts[0][1]
    unwritten, wrong = right.copy(), right.copy()
    unwritten[-1, -1] = float("nan")
    wrong[-1, -1] += 0.001

    assert judge(right, reference, shape).within
    assert not judge(unwritten, reference, shape).within
    assert not judge(wrong, reference, shape).within
