"""Every CUDA kernel of ours, as compiled: its PTX computes what the float64 reference does, and without a fault."""

import pytest

pytest.importorskip("numba.cuda", reason="numba-cuda is not installed")
pytest.importorskip("cuda.core", reason="cuda.core, which brings nvJitLink, is not installed")

from scripts.compiled_kernels import kernels
from scripts.compiled_kernels import key as key_of
from tests.kernels.ptx.launches import is_right, launched

CAPABILITIES = ("8.0", "9.0")
# one element; one more than a tile or a block along each axis; rows that begin at multiples of 16 bytes
LONG_ROWS = ((1, 1), (3, 257), (2, 1032), (1, 8200), (2, 4099))  # up to three and more stretches of a block
SHAPES = {
    "matmul": ((1, 1, 1), (33, 17, 65), (129, 40, 136)),
    "batched_matmul": ((1, 1, 1, 1, 1, 1), (3, 5, 17, 33, 7, 15), (1, 2, 33, 16, 64, 2)),
    "linear": ((1, 1, 1), (33, 17, 65), (65, 24, 136)),
    "matvec": ((1, 1), (33, 65), (65, 264), (3, 1032), (2, 4099)),
    "attention": ((1, 1, 1, 1), (1, 2, 17, 33), (1, 1, 65, 8), (1, 1, 3, 72)),
    "conv2d": ((1, 1, 1, 1, 1, 5), (2, 3, 5, 7, 17, 3), (1, 5, 17, 15, 5, 1)),
    "vector_add": ((1,), (257,), (4104,)),
    "multiply": ((1, 1), (129, 3), (16, 264)),
    "triad": ((1,), (257,), (4104,)),
    "copy": ((1,), (257,), (4104,)),
    "reduce_sum": LONG_ROWS,
    "softmax": LONG_ROWS,
    "layer_norm": LONG_ROWS,
}
BEST = "matmul/numba-cuda/"  # made of other steps, which are run as themselves
KEYS = [key for key in (key_of(*kernel) for kernel in kernels()) if not key.startswith(BEST)]
QUICK = [key for key in KEYS if key.endswith("/fp32") or "tensorcore" in key]


@pytest.mark.long
@pytest.mark.parametrize("capability", CAPABILITIES)
@pytest.mark.parametrize("key", QUICK)
def test_kernel_computes_the_right_numbers_without_a_fault(key, capability):
    lengths = SHAPES[key.split("/", maxsplit=1)[0]][1]

    report, accuracy = launched(key, lengths, capability)

    assert report.faults == ()
    assert is_right(report, accuracy), accuracy


@pytest.mark.ptx
@pytest.mark.parametrize("capability", CAPABILITIES)
@pytest.mark.parametrize("key", KEYS)
def test_kernel_is_right_at_every_shape_in_any_order_of_its_warps(subtests, key, capability):
    for lengths in SHAPES[key.split("/", maxsplit=1)[0]]:
        for copies in ("late", "early") if "tensorcore" in key else ("late",):
            with subtests.test(lengths=lengths, copies=copies):
                report, accuracy = launched(key, lengths, capability, seed=1, copies=copies)
                assert report.faults == ()
                assert is_right(report, accuracy), accuracy


def test_every_operation_with_a_kernel_has_shapes():
    assert set(SHAPES) == {key.split("/", maxsplit=1)[0] for key in KEYS}


@pytest.mark.long
def test_chunks_turned_by_their_line_meet_no_bank_conflict():
    report, _ = launched("matmul/numba-cuda-tensorcore/bf16", (64, 136, 72))

    assert report.banks
    assert all(use.wavefronts == use.fewest for use in report.banks.values())


@pytest.mark.long
def test_columns_of_a_padded_tile_cost_fewer_passes_than_without_padding():
    naive = wavefronts_over_fewest("matmul/numba-cuda-register/fp32")
    vector = wavefronts_over_fewest("matmul/numba-cuda-vector/fp32")

    assert 1 <= vector <= naive


def wavefronts_over_fewest(key):
    report, _ = launched(key, (33, 17, 65))
    used = report.banks.values()
    return sum(use.wavefronts for use in used) / sum(use.fewest for use in used)
