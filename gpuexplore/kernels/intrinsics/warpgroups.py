"""Products of a warpgroup, 128 threads, in CUDA kernels: `wgmma`, which compute capability 9.0 alone has.

The tensor cores read both factors from shared memory by themselves, as descriptors say (PTX ISA, "Asynchronous
Warpgroup Level Matrix Multiply-Accumulate Instructions"). Rows of A hold 64 terms, rows of B 64 columns: 128 bytes,
whose 8 chunks are turned by the row (its number modulo 8); 8 rows are a pattern, which starts at a multiple of 1024
bytes. The simulator of Numba has no such products; the interpreter in `gpuexplore.kernels.ptx` does.
"""

from typing import Any

from llvmlite import ir
from numba.cuda import types
from numba.cuda.extending import intrinsic

from gpuexplore.kernels.intrinsics.addresses import element_pointer, shared_address

OPERANDS = {"bf16": "bf16", "fp16": "f16"}
ROWS = 64  # of A, of a product
LINE = 64  # elements of a row in shared memory
TERMS = 16  # of a product
PATTERN_BYTES = 1024
_TURNED = 1 << 62  # rows of 128 bytes, turned
_I32, _I64, _F32 = ir.IntType(32), ir.IntType(64), ir.FloatType()


def multiplier(name: str, columns: int, depth: int) -> Any:
    """Return the function that adds A (64, depth) @ B (depth, columns) to a thread's `sums`, and waits for them.

    Its further arguments: the array in shared memory that holds both factors, and where in it they start. B lies in
    blocks of 64 columns.
    """
    products, count = depth // TERMS, columns // 2
    sums = ", ".join(f"${i}" for i in range(count))
    each = [
        f"wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.{OPERANDS[name]}.{OPERANDS[name]} "
        f"{{{sums}}}, ${count + 2 * i}, ${count + 2 * i + 1}, 1, 1, 1, 0, 1;"
        for i in range(products)
    ]
    end = ["wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;"]
    constraints = ["=f"] * count + ["l"] * (2 * products) + [str(i) for i in range(count)] + ["~{memory}"]
    kind = ir.FunctionType(ir.LiteralStructType([_F32] * count), [_I64] * (2 * products) + [_F32] * count)
    text = "\n\t".join(["wgmma.fence.sync.aligned;", *each, *end])
    assembly = ir.InlineAsm(kind, text, ",".join(constraints), side_effect=True)

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        held, tiles, (_, at_a), (_, at_b) = zip(signature.args, arguments, strict=True)
        places = [element_pointer(context, builder, held, ir.Constant(_I64, i)) for i in range(count)]
        a = _descriptor(context, builder, tiles, at_a, 0)
        b = _descriptor(context, builder, tiles, at_b, depth * LINE * 2)
        factors = []
        for i in range(products):
            along_a, along_b = i * TERMS * 2, i * TERMS * LINE * 2
            factors += [builder.add(each, ir.Constant(_I64, n // 16)) for each, n in ((a, along_a), (b, along_b))]
        found = builder.call(assembly, [*factors, *map(builder.load, places)])
        for i, place in enumerate(places):
            builder.store(builder.extract_value(found, i), place)
        return context.get_dummy_value()

    @intrinsic
    def multiply(_typing: Any, held: Any, tiles: Any, at_a: Any, at_b: Any) -> Any:
        return types.void(held, tiles, types.int64, types.int64), emit

    return multiply


def _descriptor(context: Any, builder: Any, tiles: Any, at: Any, leading_bytes: int) -> Any:
    """Return the 64 bits that tell where a factor starts, how far its blocks of columns are apart, and its patterns."""
    address = builder.zext(shared_address(context, builder, tiles, at), _I64)
    start = builder.and_(builder.lshr(address, ir.Constant(_I64, 4)), ir.Constant(_I64, 0x3FFF))
    layout = _TURNED | PATTERN_BYTES // 16 << 32 | leading_bytes // 16 << 16
    return builder.or_(start, ir.Constant(_I64, layout))


@intrinsic
def show_to_tensor_cores(_typing: Any) -> Any:
    """Let products see what this thread has brought to shared memory, as far as it has arrived."""

    def emit(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [])
        builder.call(ir.InlineAsm(kind, "fence.proxy.async.shared::cta;", "~{memory}", side_effect=True), [])
        return context.get_dummy_value()

    return types.void(), emit
