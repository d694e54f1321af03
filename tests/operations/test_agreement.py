"""Every implementation of every operation agrees with the float64 reference, in every dtype, at awkward sizes."""

from itertools import product

import pytest

from gpuexplore.backends import load_backend
from gpuexplore.devices.cpu import cpu_device
from gpuexplore.dtypes import DTYPES
from gpuexplore.measure.candidate import build_candidate, unsupported
from gpuexplore.measure.correctness import check, tolerance
from gpuexplore.measure.idle_threads import Timekeeper
from gpuexplore.measure.inputs import Reference, make_inputs
from gpuexplore.measure.prepare import checked
from gpuexplore.measure.runner import open_group
from gpuexplore.model import Case, Options, Shape
from gpuexplore.operations import OPERATIONS
from tests.measure.fakes import GPU, FakeClock
from tests.operations.shapes import awkward_shapes, simulated_shapes
from tests.operations.simulated import expect_right, simulate

CPU = cpu_device()


def combinations(*, here, optional=(False, True)):
    """Return operation, implementation and dtype of those that run on this CPU, or of those that do not."""
    return [
        pytest.param(operation, implementation, dtype, id=f"{operation.name}-{implementation.name}-{dtype.name}")
        for operation in OPERATIONS.values()
        for implementation, dtype in product(operation.implementations, DTYPES.values())
        if implementation.optional in optional and (unsupported(operation, implementation, dtype, CPU) is None) == here
    ]


def expect_agreement(operation, implementation, dtype, shapes):
    for shape in shapes:
        case = Case(operation.name, shape, dtype.name, implementation.name, "cpu", Options(threads=2))
        group = open_group([case], CPU, Timekeeper(FakeClock(), lambda: None))
        candidate = build_candidate(case, operation, CPU, inputs=group.checked_reference.inputs, clock=group.time.clock)
        candidate.poison()
        candidate.run()

        assert checked(candidate, group, group.checked_reference).within, shape


@pytest.mark.parametrize(("operation", "implementation", "dtype"), combinations(here=True, optional=[False]))
def test_implementation_agrees_with_the_reference_at_awkward_sizes(operation, implementation, dtype):
    expect_agreement(operation, implementation, dtype, awkward_shapes(operation))


COMPILED = [
    combination for combination in combinations(here=True, optional=[True]) if combination.values[2].name == "bf16"
]


@pytest.mark.slow  # a compilation takes seconds: one dtype at one size
@pytest.mark.parametrize(("operation", "implementation", "dtype"), COMPILED)
def test_compiled_implementation_agrees_with_the_reference(monkeypatch, repository, operation, implementation, dtype):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(repository / ".pytest_cache" / "inductor"))

    expect_agreement(operation, implementation, dtype, awkward_shapes(operation)[-1:])


@pytest.mark.parametrize(("operation", "implementation", "dtype"), combinations(here=False))
def test_combination_that_does_not_run_here_says_why(operation, implementation, dtype):
    reason = unsupported(operation, implementation, dtype, CPU)

    assert reason == expected_reason(operation, implementation, dtype)


def expected_reason(operation, implementation, dtype):
    """Return the sentence for what cannot run on a CPU: a GPU's implementation, or a GPU's number format."""
    if not implementation.runs_on(CPU):
        return f"{implementation.name} runs on cuda devices, and cpu is none"
    backend = load_backend(implementation.backend)
    if not backend.is_available():
        return f"{implementation.name} is not installed: {backend.INSTALL}"
    if not dtype.matrix_only:
        return "torch.compile needs a C++ compiler on a CPU, and g++ is not here"
    if not operation.is_matrix_product:
        return f"tf32 exists only inside matrix units, and {operation.name} is no matrix product"
    return f"tf32 exists only inside a GPU's matrix units; {CPU.name} has none"


@pytest.fixture(scope="module")
def simulated():
    """Return what the CUDA kernels computed in Numba's simulator."""
    return simulate()


KERNELS = [
    pytest.param(operation, implementation, id=f"{operation.name}-{implementation.name}")
    for operation in OPERATIONS.values()
    for implementation in operation.implementations
    if implementation.backend == "numba_cuda"
]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", list(DTYPES.values()), ids=list(DTYPES))
@pytest.mark.parametrize(("operation", "kernel"), KERNELS)
def test_cuda_kernel_agrees_with_the_reference_in_the_simulator(simulated, operation, kernel, dtype):
    found = [one for what, one in simulated.items() if what[:3] == (operation.name, kernel.name, dtype.name)]
    has_code = (operation.unsupported(dtype) or kernel.unsupported(dtype, GPU)) is None

    assert len(found) == (len(simulated_shapes(operation)) if has_code else 0)
    expect_right(found)


def test_a_kernel_that_leaves_out_the_edge_of_its_grid_would_be_seen():
    """What the checks above rest on: one unwritten element, or one in error, is not forgiven."""
    operation, shape, dtype = OPERATIONS["matmul"], Shape.of(m=17, k=33, n=17), DTYPES["fp32"]
    reference = Reference(operation, dtype, make_inputs(operation, shape, dtype, "normal"))
    right, allowed = reference.parts[0][1], tolerance(operation, shape, dtype)
    unwritten, wrong = right.copy(), right.copy()
    unwritten[-1, -1] = float("nan")
    wrong[-1, -1] += 0.1

    assert check(right, reference.parts, allowed).within
    assert not check(unwritten, reference.parts, allowed).within
    assert not check(wrong, reference.parts, allowed).within
