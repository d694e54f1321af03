from dataclasses import replace

import pytest

from gpuexplore.core.model import Shape
from gpuexplore.features.machine_code.analysis.ladder import kernels, ladder, libraries, published
from gpuexplore.features.machine_code.ui.ladder import _ladder_experiment
from gpuexplore.operations import OPERATIONS, operation_named
from tests.analysis.made import failed, ok

MATMUL = OPERATIONS["matmul"]


def shares(*results):
    return {rung.implementation.name: rung.share for rung in ladder(MATMUL, "numba_cuda", results)}


def test_a_rung_is_compared_with_the_fastest_library_in_the_same_rounds():
    results = [ok(2e-3, implementation="numpy"), ok(1e-3), ok(4e-3, implementation="numba-cuda-naive")]
    rung = next(rung for rung in ladder(MATMUL, "numba_cuda", results) if rung.share)

    assert (rung.implementation.name, rung.baseline) == ("numba-cuda-naive", "torch")
    assert rung.share == pytest.approx(0.25)
    assert rung.ci95[0] <= 0.25 <= rung.ci95[1]


def test_results_of_another_size_are_never_compared_with_each_other():
    small = [ok(1e-3, size=64), ok(4e-3, size=64, implementation="numba-cuda-naive")]
    large = [ok(1.0, size=512), ok(2.0, size=512, implementation="numba-cuda-coalesced")]

    assert shares(*small, *large)["numba-cuda-naive"] == pytest.approx(0.25)
    assert shares(*small, *large)["numba-cuda-coalesced"] is None


def test_without_a_library_or_a_time_there_is_no_share():
    assert set(shares().values()) == {None}
    assert set(shares(ok(1.0, implementation="numba-cuda-naive")).values()) == {None}
    assert set(shares(ok(1.0), failed(implementation="numba-cuda-naive")).values()) == {None}


def test_rungs_stand_in_the_order_of_the_operation_and_libraries_are_not_ours():
    names = [kernel.name for kernel in kernels(MATMUL, "numba_cuda")]

    assert names[0] == "numba-cuda-naive"
    assert names == [implementation.name for implementation in MATMUL.implementations if implementation.name in names]
    assert [library.name for library in libraries(MATMUL, "numba_cpu")] == ["numpy", "torch"]
    assert [library.name for library in libraries(MATMUL, "numba_cuda")] == ["torch"]
    assert [library.name for library in libraries(OPERATIONS["conv2d"], "numba_cuda")] == ["torch", "torch-autotune"]


@pytest.mark.parametrize(
    ("name", "backend", "names"),
    [
        ("softmax", "numba_cpu", ["numba-cpu"]),
        ("vector_add", "numba_cuda", ["numba-cuda-naive", "numba-cuda"]),
        ("matvec", "numba_cuda", ["numba-cuda-naive", "numba-cuda"]),
    ],
)
def test_a_ladder_ends_with_the_usual_kernel_where_that_is_no_rung_again(name, backend, names):
    assert [kernel.name for kernel in kernels(OPERATIONS[name], backend)] == names
    assert [kernel.name for kernel in kernels(MATMUL, backend) if not kernel.rung] == []


def test_the_experiment_measures_libraries_and_rungs_at_one_shape():
    asked = _ladder_experiment(MATMUL, "numba_cuda", Shape.of(m=8, k=8, n=8), dtype="bf16", device="cuda:0")

    assert (len(asked.shapes), asked.dtypes, asked.devices) == (1, ("bf16",), ("cuda:0",))
    assert asked.implementations[0] == "torch"
    assert "numba-cuda-naive" in asked.implementations


def test_published_shares_name_known_kernels_and_their_source():
    found = published("matmul", "fp32")

    for name, row in found.items():
        MATMUL.implementation_named(name)
        assert 0 < float(row["share"]) <= 1
        assert row["source"].startswith("https://")
    assert found["numba-cuda-shared"]["implementation"] == "numba-cuda-shared"
    assert published("matmul", "bf16") == {}
