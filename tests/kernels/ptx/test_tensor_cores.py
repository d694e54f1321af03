"""Fragments of `mma` and `ldmatrix` against np.matmul, by the ISA's tables written out lane by lane."""

import numpy as np
import pytest

from gpuexplore.core.dtypes import DTYPES
from tests.kernels.ptx.snippets import WARP, kernel, launch, pointers

RANDOM = np.random.default_rng(10)
SHAPES = {"m16n8k8.tf32": ("tf32", 8), "m16n8k16.bf16": ("bf16", 16), "m16n8k16.f16": ("fp16", 16)}
SHAPES |= {"m16n8k4.tf32": ("tf32", 4), "m16n8k8.f16": ("fp16", 8)}


def fragment_a(matrix, per):
    """Return the registers of the first factor: (32, registers), each of `per` numbers."""
    depth = matrix.shape[1]
    return np.array(
        [
            [
                [matrix[lane // 4 + 8 * (i % 2), (lane % 4) * per + h + i // 2 * 4 * per] for h in range(per)]
                for i in range(2 * depth // (4 * per))
            ]
            for lane in range(WARP)
        ]
    )


def fragment_b(matrix, per):
    depth = matrix.shape[0]
    return np.array(
        [
            [
                [matrix[(lane % 4) * per + h + i * 4 * per, lane // 4] for h in range(per)]
                for i in range(depth // (4 * per))
            ]
            for lane in range(WARP)
        ]
    )


def words(fragment):
    return np.ascontiguousarray(fragment).reshape(WARP, -1).view(np.uint32)


@pytest.mark.parametrize("name", SHAPES)
def test_product_of_fragments_is_the_matrix_product(name):
    dtype, depth = DTYPES[SHAPES[name][0]], SHAPES[name][1]
    shape, kind = name.split(".")
    per = 4 // dtype.storage.itemsize
    a, b = (dtype.round(RANDOM.standard_normal(size)) for size in ((16, depth), (depth, 8)))
    c = RANDOM.standard_normal((16, 8)).astype(np.float32)
    left, right = words(fragment_a(a, per)), words(fragment_b(b, per))
    sums = np.array([[c[lane // 4 + i // 2 * 8, lane % 4 * 2 + i % 2] for i in range(4)] for lane in range(WARP)])

    def named(count, first):
        return [f"%r{first + i}" for i in range(count)]

    parts = [(left, named(left.shape[1], 10)), (right, named(right.shape[1], 20)), (sums, named(4, 30))]
    arrays = [part for part, _ in parts]
    loads = [
        f"ld.global.b32 {register}, [%d{i}+{4 * j}];"
        for i, (_, registers) in enumerate(parts)
        for j, register in enumerate(registers)
    ]
    a_list, b_list, c_list = ("{" + ", ".join(registers) + "}" for _, registers in parts)
    operands = f"{{%r40, %r41, %r42, %r43}}, {a_list}, {b_list}, {c_list}"
    stores = [f"st.global.b32 [%d3+{4 * j}], %r{40 + j};" for j in range(4)]
    text = kernel(
        "\n".join(
            [
                pointers(4, [4 * array.shape[1] for array in (*arrays, sums)]),
                *loads,
                f"mma.sync.aligned.{shape}.row.col.f32.{kind}.{kind}.f32 {operands};",
                *stores,
            ]
        ),
        arrays=4,
    )

    report = launch(text, *(array.reshape(-1) for array in arrays), np.zeros(4 * WARP, np.float32))

    assert report.faults == ()
    expected = np.matmul(dtype.widen(a), dtype.widen(b)) + c
    found = report.arrays[3].reshape(WARP, 4)
    for lane in range(WARP):
        for i in range(4):
            np.testing.assert_allclose(
                found[lane, i], expected[lane // 4 + i // 2 * 8, lane % 4 * 2 + i % 2], rtol=1e-5, atol=1e-6
            )


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("trans", ["", ".trans"])
def test_matrices_are_loaded_as_fragments(count, trans):
    matrices = RANDOM.integers(0, 2**16, (count, 8, 8)).astype(np.uint16)
    padded = np.zeros((4, 8, 8), np.uint16)
    padded[:count] = matrices
    registers = [f"%r{10 + i}" for i in range(count)]
    text = kernel(
        f"{pointers(2, (16, 4 * count))} mov.u32 %r2, tile; shl.b32 %r3, %r0, 4; add.u32 %r4, %r2, %r3;"
        "ld.global.v4.b32 {%r5, %r6, %r7, %r8}, [%d0]; st.shared.v4.b32 [%r4], {%r5, %r6, %r7, %r8}; bar.sync 0;"
        f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {{{', '.join(registers)}}}, [%r4];"
        + "".join(f"st.global.b32 [%d1+{4 * i}], {name};" for i, name in enumerate(registers)),
        arrays=2,
    )

    report = launch(text, padded.reshape(-1), np.zeros(WARP * count, np.uint32))

    assert report.faults == ()
    found = report.arrays[1].view(np.uint16).reshape(WARP, count, 2)
    for lane in range(WARP):
        for i in range(count):
            matrix = matrices[i].T if trans else matrices[i]
            assert found[lane, i].tolist() == matrix[lane // 4, lane % 4 * 2 : lane % 4 * 2 + 2].tolist()


def test_product_without_every_lane_is_found():
    numbers = "{%r1, %r2, %r3, %r4}, {%r5, %r6, %r7, %r8}, {%r9, %r10}, {%r1, %r2, %r3, %r4}"
    text = kernel(
        "mov.u32 %r0, %tid.x; setp.lt.u32 %p1, %r0, 16;"
        f"@%p1 mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {numbers};"
    )

    (fault,) = launch(text, np.zeros(1, np.float32)).faults
    assert (fault.kind, fault.about) == ("barrier", "not every lane of the warp takes part")
