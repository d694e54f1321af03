"""Every CUDA kernel of ours, as compiled: its PTX computes what the float64 reference does, and without a fault.

At one shape and for one target each, `tests/operations/test_ptx.py` runs them as it compiles them.
"""

from itertools import groupby

import pytest

pytest.importorskip("numba.cuda", reason="numba-cuda is not installed")
pytest.importorskip("cuda.core", reason="cuda.core, which brings nvJitLink, is not installed")

from gpuexplore.operations.kernel_targets import capabilities_for
from scripts.compiled_kernels import kernels
from scripts.compiled_kernels import key as key_of
from tests.kernels.ptx.launches import EXECUTED, found, is_asynchronous, is_right, launched, lengths_for
from tests.operations.changed import unless_changed

BEST = "matmul/numba-cuda/"  # made of other steps, which are run as themselves
CASES = [
    pytest.param(kernel, capability, id=f"{key_of(*kernel)}-{capability}")
    for kernel in kernels()
    for capability in EXECUTED
    if capability in capabilities_for(*kernel) and not key_of(*kernel).startswith(BEST)
]


def other_blocks():
    """Yield each kernel with each block but its default, in fp32 or bf16 and in another dtype, those in rotation."""
    for name, rows in groupby(kernels(), key=lambda kernel: key_of(*kernel).rpartition("/")[0] + "/"):
        dtypes = [key_of(*kernel) for kernel in rows]
        usual = [key for key in dtypes if key.endswith(("/fp32", "/bf16"))][-1]
        blocks = () if name == BEST else found(usual)[1].geometry.blocks[1:]
        for index, block in enumerate(blocks):
            for key in sorted({usual, dtypes[index % len(dtypes)]}):
                yield pytest.param(key, block, id=f"{key}-{'x'.join(map(str, block))}")


@pytest.mark.ptx
@pytest.mark.parametrize(("kernel", "capability"), CASES)
def test_kernel_is_right_at_every_shape_in_any_order_of_its_warps(subtests, kernel, capability):
    key = key_of(*kernel)
    for lengths in lengths_for(key):
        for copies in ("late", "early"):
            with subtests.test(lengths=lengths, copies=copies):
                report, accuracy = launched(key, lengths, capability=capability, seed=1, copies=copies)
                assert report.faults == ()
                assert is_right(report, accuracy), accuracy
            if not is_asynchronous(report):
                break


@pytest.mark.ptx
@pytest.mark.parametrize(("key", "block"), [*other_blocks()])
def test_kernel_is_right_in_every_other_block(subtests, key, block):
    operation, implementation, dtype = found(key)
    capability = next(each for each in EXECUTED if each in capabilities_for(operation, implementation, dtype))
    for lengths in lengths_for(key):
        with subtests.test(lengths=lengths):
            report, accuracy = launched(key, lengths, capability=capability, block=block)
            assert report.faults == ()
            assert is_right(report, accuracy), accuracy


@pytest.mark.parametrize("name", [pytest.param(name, marks=unless_changed(name)) for name in ("softmax", "layer_norm")])
@pytest.mark.parametrize("width", [1032, 4099])
def test_threads_of_the_largest_block_hold_a_whole_vector_of_16_bits(name, width):
    report, accuracy = launched(f"{name}/numba-cuda/bf16", (2, width), block=(1024,))

    assert is_right(report, accuracy), (report.faults, accuracy)


@pytest.mark.ptx
def test_chunks_turned_by_their_line_meet_no_bank_conflict():
    report, _ = launched("matmul/numba-cuda-tensorcore/bf16", (64, 264, 72))

    assert report.banks
    assert all(use.wavefronts == use.fewest for use in report.banks.values())


@pytest.mark.ptx
def test_columns_of_a_padded_tile_cost_fewer_passes_than_without_padding():
    naive = wavefronts_over_fewest("matmul/numba-cuda-register/fp32")
    vector = wavefronts_over_fewest("matmul/numba-cuda-vector/fp32")

    assert 1 <= vector <= naive


def wavefronts_over_fewest(key):
    report, _ = launched(key, (33, 17, 65))
    used = report.banks.values()
    return sum(use.wavefronts for use in used) / sum(use.fewest for use in used)
