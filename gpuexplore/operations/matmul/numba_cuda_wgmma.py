"""A step for compute capability 9.0: warpgroups of 128 threads multiply tiles that the tensor cores read by themselves.

The tensor cores of 9.0 are built for `wgmma`: no fragment passes through registers, as with `mma.sync`. One instruction
multiplies 64 x 16 by 16 x 128 elements in shared memory, where rows of 128 bytes are swizzled as its descriptors say.
Three pairs of tiles are there, of 64 terms: one is multiplied, two are on their way. Two blocks fit on a
multiprocessor, so that one multiplies while the other waits. Edges are as in `numba_cuda_tensorcore`.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import cuda
from numba.cuda import types
from numba.cuda.extending import intrinsic

from gpuexplore.core.dtypes import DType
from gpuexplore.kernels.cuda_kernel import WARP, Block, CudaKernel, Kernel, inlined, sum_type
from gpuexplore.kernels.intrinsics.tensor_cores import accumulator_storer
from gpuexplore.kernels.intrinsics.vectors import (
    clear,
    commit_copies,
    materialize,
    vector_length,
    vectors_copier,
    wait_for_copies,
)
from gpuexplore.kernels.llvm_values import element_pointer, shared_address
from gpuexplore.operations.matmul import THREAD_TILE
from gpuexplore.operations.matmul import WARPGROUP_TILES as TILES
from gpuexplore.operations.matmul.numba_cuda_tensorcore import edge_copier

ROWS = 64  # of A, of a product
LINE = 64  # elements of a row in shared memory
TERMS = 16  # of a product
PATTERN_BYTES = 1024
_I64 = ir.IntType(64)
_F32 = ir.FloatType()

STAGES = 3
IN_FLIGHT = STAGES - 2  # groups of copies that may be on their way when a tile has to have arrived
DEPTH = 64  # terms of a tile
CHUNKS = 8  # of 16 bytes in a line, of 64 elements
COLUMNS = 128  # of a block


def _edge_pair_copier(rows: int, threads: int, vector: int) -> Any:
    """Return a device function that starts to copy a pair of tiles, zeros beyond the matrices, and closes the group."""
    copy_a = edge_copier(rows, CHUNKS, threads, vector, swizzle=2)
    copy_b = edge_copier(DEPTH, CHUNKS, threads, vector, swizzle=2)
    size_a = rows * DEPTH
    size_b = DEPTH * LINE

    @inlined
    def copy(tiles, first, thread, a, b, top, left, term):
        copy_a(tiles, first, thread, a, a.shape, top, term)
        copy_b(tiles, first + size_a, thread, b, b.shape, term, left)
        copy_b(tiles, first + size_a + size_b, thread, b, b.shape, term, left + LINE)
        commit_copies()

    return copy


def _start_finder(rows: int, threads: int, vector: int) -> Any:
    """Return a device function that finds where a thread's copies start, and returns their first offset in a tile."""
    lines = threads // CHUNKS
    a_loads = rows // lines

    @inlined
    def find(starts_a, starts_b, thread, top, left, a, b):
        k, n = b.shape
        line = thread // CHUNKS
        chunk = thread % CHUNKS
        for load in range(a_loads):
            starts_a[load] = materialize(min(top + line + load * lines, a.shape[0] - 1) * k + chunk * vector)
        for half in range(2):
            starts_b[half] = materialize(line * n + min(left + half * LINE + chunk * vector, n - vector))
        return materialize((line * CHUNKS + (chunk ^ line % CHUNKS)) * vector)

    return find


def _whole_tiles(rows: int, threads: int, vector: int, multiply: Any) -> Any:
    """Return a device function that goes along the terms where all tiles are whole, and looks at no bounds.

    `start` and `end`: terms of the first pair that it starts to copy, and of the first that it does not.
    """
    size_a = rows * DEPTH
    size = (rows + COLUMNS) * DEPTH
    lines = threads // CHUNKS
    copy_a = vectors_copier(rows // lines, threads * vector)
    b_loads = DEPTH // lines
    apart = threads * vector
    copy_b = vectors_copier(2, DEPTH * LINE)

    def stage(number: int) -> Any:
        now = number * size
        free = (number + STAGES - 1) % STAGES * size
        further = number * DEPTH

        @inlined
        def step(sums, tiles, a, b, starts_a, starts_b, into, row, term):
            wait_for_copies(IN_FLIGHT)
            _fence_async_proxy()
            cuda.syncthreads()
            copy_a(tiles, into + free, a, starts_a, term + further)
            for load in range(b_loads):
                along = (term + further + load * lines) * b.shape[1]
                copy_b(tiles, into + free + size_a + load * apart, b, starts_b, along)
            commit_copies()
            multiply(sums, tiles, now + row * DEPTH, now + size_a)

        return step

    first, second, last = map(stage, range(STAGES))

    @inlined
    def main_loop(sums, tiles, a, b, starts_a, starts_b, into, row, start, end):
        for term in range(start, end, STAGES * DEPTH):
            first(sums, tiles, a, b, starts_a, starts_b, into, row, term)
            second(sums, tiles, a, b, starts_a, starts_b, into, row, term)
            last(sums, tiles, a, b, starts_a, starts_b, into, row, term)

    return main_loop


def _make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel that writes (m, k) @ (k, n) to `out` (m, n)."""
    element = dtype.storage
    kind = sum_type(dtype)
    width, height = block
    vector = vector_length(element)
    threads = width * height
    rows = THREAD_TILE * height
    sums_per_thread = COLUMNS // 2
    size_a = rows * DEPTH
    size = (rows + COLUMNS) * DEPTH
    a_loads = rows * CHUNKS // threads
    copy_pair = _edge_pair_copier(rows, threads, vector)
    find_starts = _start_finder(rows, threads, vector)
    multiply = _multiplier(dtype.name, COLUMNS, DEPTH)
    main_loop = _whole_tiles(rows, threads, vector, multiply)
    store = accumulator_storer(1, COLUMNS // 8)

    def matmul(a, b, out):
        tiles = cuda.shared.array(0, element, PATTERN_BYTES)
        sums = cuda.local.array(sums_per_thread, kind)
        starts_a = cuda.local.array(a_loads, np.uint32)
        starts_b = cuda.local.array(2, np.uint32)
        thread = (cuda.threadIdx.y * width + cuda.threadIdx.x) & (threads - 1)  # & says that it is not negative
        warp = thread // WARP
        lane = thread % WARP
        k = a.shape[1]
        n = out.shape[1]
        top = cuda.blockIdx.y * rows
        left = cuda.blockIdx.x * COLUMNS
        row = warp // 4 * ROWS
        clear(sums, sums_per_thread)
        for ahead in range(STAGES - 1):
            copy_pair(tiles, ahead * size, thread, a, b, top, left, ahead * DEPTH)
        done = 0
        if k % vector == 0 and n % vector == 0:
            into = find_starts(starts_a, starts_b, thread, top, left, a, b)
            done = max(k // DEPTH - STAGES + 1, 0) // STAGES * STAGES
            main_loop(
                sums, tiles, a, b, starts_a, starts_b, into, row, (STAGES - 1) * DEPTH, (STAGES - 1 + done) * DEPTH
            )
        for tile in range(done, (k + DEPTH - 1) // DEPTH):
            wait_for_copies(IN_FLIGHT)
            _fence_async_proxy()
            cuda.syncthreads()
            again = materialize(thread) & (threads - 1)  # so that nothing is kept from one edge to the next
            ahead = tile + STAGES - 1
            now = tile % STAGES * size
            copy_pair(tiles, ahead % STAGES * size, again, a, b, top, left, ahead * DEPTH)
            multiply(sums, tiles, now + row * DEPTH, now + size_a)
        row = top + row + warp % 4 * 16 + lane // 4
        column = left + lane % 4 * 2
        store(out, row * n + column, sums, n, out.shape[0] - row, n - column)

    return matmul


def shared_bytes(_: DType, block: Block) -> int:
    """Return the bytes of all tiles, of 16-bit elements."""
    return STAGES * DEPTH * 2 * (THREAD_TILE * block[1] + COLUMNS)


KERNEL = CudaKernel(_make, TILES, resident_threads=lambda _: 512, dynamic_shared_bytes=shared_bytes)


# Products of a warpgroup, 128 threads, in CUDA kernels: `wgmma`, which compute capability 9.0 alone has.
#
# The tensor cores read both factors from shared memory by themselves, as descriptors say (PTX ISA, "Asynchronous
# Warpgroup Level Matrix Multiply-Accumulate Instructions"). Rows of A have 64 terms, rows of B 64 columns: 128 bytes,
# whose 8 chunks are swizzled by the row (its number modulo 8); 8 rows are a pattern, which starts at a multiple of 1024
# bytes. The simulator of Numba has no such products; the interpreter in `gpuexplore.kernels.ptx` does.


def _multiplier(name: str, columns: int, depth: int) -> Any:
    """Return the function that adds A (64, depth) @ B (depth, columns) to a thread's `sums`, and waits for them.

    Its further arguments: the array in shared memory with both factors, and where in it they start. B lies in
    blocks of 64 columns.
    """
    operand = {"bf16": "bf16", "fp16": "f16"}[name]
    products = depth // TERMS
    count = columns // 2
    registers = ", ".join(f"${i}" for i in range(count))
    each = [
        f"wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.{operand}.{operand} "
        f"{{{registers}}}, ${count + 2 * i}, ${count + 2 * i + 1}, 1, 1, 1, 0, 1;"
        for i in range(products)
    ]
    end = ["wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;"]
    constraints = ["=f"] * count + ["l"] * (2 * products) + [str(i) for i in range(count)] + ["~{memory}"]
    kind = ir.FunctionType(ir.LiteralStructType([_F32] * count), [_I64] * (2 * products) + [_F32] * count)
    text = "\n\t".join(["wgmma.fence.sync.aligned;", *each, *end])
    assembly = ir.InlineAsm(kind, text, ",".join(constraints), side_effect=True)

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        sums, tiles, (_, at_a), (_, at_b) = zip(signature.args, arguments, strict=True)
        pointers = [element_pointer(context, builder, sums, ir.Constant(_I64, i)) for i in range(count)]
        a = _descriptor(context, builder, tiles, at_a, 0)
        b = _descriptor(context, builder, tiles, at_b, depth * LINE * 2)
        factors = []
        for i in range(products):
            along_a = i * TERMS * 2
            along_b = i * TERMS * LINE * 2
            factors += [builder.add(each, ir.Constant(_I64, n // 16)) for each, n in ((a, along_a), (b, along_b))]
        found = builder.call(assembly, [*factors, *map(builder.load, pointers)])
        for i, pointer in enumerate(pointers):
            builder.store(builder.extract_value(found, i), pointer)
        return context.get_dummy_value()

    @intrinsic
    def multiply(_typing: Any, sums: Any, tiles: Any, at_a: Any, at_b: Any) -> Any:
        return types.void(sums, tiles, types.int64, types.int64), emit

    return multiply


def _descriptor(context: Any, builder: Any, tiles: Any, at: Any, leading_bytes: int) -> Any:
    """Return the 64 bits of where a factor starts, how far its blocks of columns are apart, and its patterns."""
    address = builder.zext(shared_address(context, builder, tiles, at), _I64)
    start = builder.and_(builder.lshr(address, ir.Constant(_I64, 4)), ir.Constant(_I64, 0x3FFF))
    swizzle_128_bytes = 1 << 62
    layout = swizzle_128_bytes | PATTERN_BYTES // 16 << 32 | leading_bytes // 16 << 16
    return builder.or_(start, ir.Constant(_I64, layout))


@intrinsic
def _fence_async_proxy(_typing: Any) -> Any:
    """Make visible to products what this thread has copied to shared memory, as far as it has arrived."""

    def emit(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [])
        builder.call(ir.InlineAsm(kind, "fence.proxy.async.shared::cta;", "~{memory}", side_effect=True), [])
        return context.get_dummy_value()

    return types.void(), emit
