"""The loops that measure a CPU's ceilings, as LLVM code: nothing a compiler could improve or drop.

No optimisation pass runs over them, so what is written is what executes. Each accumulator is a
vector register of its own: a fused multiply-add takes 4 cycles and two start per cycle, so at least
8 must be in flight; 12 fit the 16 registers of AVX and 24 the 32 of AVX-512 and Arm.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MultiplyAddLoop:
    """One loop of independent multiply-adds over vector registers.

    Attributes:
        element: LLVM type that is accumulated.
        lanes: elements in a vector register.
        accumulators: registers that are summed into.
        products: multiply-adds per lane and instruction.
        operand: LLVM vector type that is multiplied.
        instruction: LLVM function that multiplies and adds.
        accumulator_first: the order of its arguments.
    """

    element: str
    lanes: int
    accumulators: int
    operand: str
    instruction: str
    products: int = 1
    accumulator_first: bool = False

    @property
    def flop_count(self) -> int:
        """FLOPs of one iteration of the loop; a multiply-add is 2."""
        return 2 * self.lanes * self.accumulators * self.products

    @property
    def vector(self) -> str:
        """LLVM type of an accumulator."""
        return f"<{self.lanes} x {self.element}>"


ATTRIBUTES = '"min-legal-vector-width"="512" "prefer-vector-width"="512"'
# TDPBF16PS: 16 x 16 sums of 32 products, 16,384 FLOPs, one in 16 cycles; two 512-bit FMAs in fp32 are 64 in one.
# Intel 64 and IA-32 architectures optimization reference manual, chapter 20
TILES_PER_FMA = 1024 / 64


def register_bytes(features: Mapping[str, bool]) -> int:
    """Return the width of the widest vector register."""
    return 64 if features.get("avx512f") else 32 if features.get("avx") else 16


def loops_for(features: Mapping[str, bool]) -> dict[str, MultiplyAddLoop]:
    """Return the loop of every dtype that this host has instructions for."""
    loops = {dtype: _fma_loop(dtype, features) for dtype in ("fp64", "fp32")}
    if features.get("avx512fp16") or features.get("fullfp16"):
        loops["fp16"] = _fma_loop("fp16", features)
    if features.get("avx512bf16"):
        dot = "llvm.x86.avx512bf16.dpbf16ps.512"
        loops["bf16"] = MultiplyAddLoop("float", 16, 24, "<32 x bfloat>", dot, products=2, accumulator_first=True)
    return loops


def tile_dtypes(features: Mapping[str, bool]) -> tuple[str, ...]:
    """Return the dtypes that AMX multiplies, whose rate follows from that of the fp32 loop."""
    return tuple(dtype for dtype in ("bf16", "fp16") if features.get(f"amx-{dtype}"))


def unreached_dtypes(features: Mapping[str, bool]) -> tuple[str, ...]:
    """Return the dtypes with a matrix unit of Arm, whose rate is unknown: it differs from core to core.

    Such units are faster than any vector instruction: a vector loop would understate the ceiling.
    """
    return ("bf16",) if features.get("bf16") else ()


def _fma_loop(dtype: str, features: Mapping[str, bool]) -> MultiplyAddLoop:
    elements = {"fp64": ("double", "f64", 8), "fp32": ("float", "f32", 4), "fp16": ("half", "f16", 2)}
    element, suffix, size_bytes = elements[dtype]
    lanes = register_bytes(features) // size_bytes
    accumulators = 12 if features.get("sse2") and not features.get("avx512f") else 24
    # fmuladd is one instruction where the host has it, else a multiply and an add: never a library call.
    return MultiplyAddLoop(element, lanes, accumulators, f"<{lanes} x {element}>", f"llvm.fmuladd.v{lanes}{suffix}")


def loop_code(name: str, loop: MultiplyAddLoop) -> str:
    """Return LLVM code of `void name(i64 iterations, accumulator *sums, operand *factors)`.

    The factors are loaded and the sums stored, so the work depends on memory and is not dropped.
    """
    vector = loop.vector
    operand = loop.operand
    order = (vector, operand, operand) if loop.accumulator_first else (operand, operand, vector)
    signature = ", ".join(order)
    numbers = range(loop.accumulators)
    phis = "\n".join(f"  %a{i} = phi {vector} [%s, %entry], [%b{i}, %loop]" for i in numbers)
    steps = "\n".join(f"  %b{i} = call {vector} @{loop.instruction}({_arguments(loop, i)})" for i in numbers)
    sums = "\n".join(f"  store volatile {vector} %b{i}, ptr %sums, align 4" for i in numbers)
    return f"""
declare {vector} @{loop.instruction}({signature})
define void @{name}(i64 %iterations, ptr %sums, ptr %factors) {ATTRIBUTES} {{
entry:
  %s = load {vector}, ptr %sums, align 4
  %x = load {operand}, ptr %factors, align 4
  %second = getelementptr {operand}, ptr %factors, i64 1
  %y = load {operand}, ptr %second, align 4
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
{phis}
{steps}
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %iterations
  br i1 %more, label %loop, label %exit
exit:
{sums}
  ret void
}}
"""


def _arguments(loop: MultiplyAddLoop, number: int) -> str:
    accumulator = f"{loop.vector} %a{number}"
    factors = f"{loop.operand} %x, {loop.operand} %y"
    return f"{accumulator}, {factors}" if loop.accumulator_first else f"{factors}, {accumulator}"


def triad_code(name: str, lanes: int, *, past_cache: bool) -> str:
    """Return LLVM code of `void name(i64 first, i64 last, double *a, double *b, double *c)`: c = a + 3 b.

    The stores go past the cache (`nontemporal`), or are ordinary ones, as compilers write them: each line of c is read
    before it is written then, which is not counted. Both ends are multiples of 8, the arrays aligned to 64 bytes.
    """
    hint = ", !nontemporal !0" if past_cache else ""
    vector = f"<{lanes} x double>"
    three = ", ".join(["double 3.0"] * lanes)
    return f"""
declare {vector} @llvm.fmuladd.v{lanes}f64({vector}, {vector}, {vector})
define void @{name}(i64 %first, i64 %last, ptr %a, ptr %b, ptr %c) {ATTRIBUTES} {{
entry:
  br label %loop
loop:
  %i = phi i64 [%first, %entry], [%next, %loop]
  %pa = getelementptr double, ptr %a, i64 %i
  %pb = getelementptr double, ptr %b, i64 %i
  %pc = getelementptr double, ptr %c, i64 %i
  %va = load {vector}, ptr %pa, align {8 * lanes}
  %vb = load {vector}, ptr %pb, align {8 * lanes}
  %vc = call {vector} @llvm.fmuladd.v{lanes}f64({vector} %vb, {vector} <{three}>, {vector} %va)
  store {vector} %vc, ptr %pc, align {8 * lanes}{hint}
  %next = add i64 %i, {lanes}
  %more = icmp ult i64 %next, %last
  br i1 %more, label %loop, label %exit
exit:
  ret void
}}
!0 = !{{i32 1}}
"""


def flush_code(name: str, features: Mapping[str, bool]) -> str | None:
    """Return LLVM code of `void name(i64 first, i64 last, double *a, double *b, double *c)`: no cache keeps a line.

    Writes lines back to memory and drops them from every cache level, in steps of 64 bytes; None where the host has no
    such instruction for programs. Arrays need not overflow the caches then.
    """
    x86 = "clflushopt ($0)" if features.get("clflushopt") else "clflush ($0)" if features.get("sse2") else None
    instruction = x86 or ("dc civac, $0" if features.get("neon") else None)
    if instruction is None:
        return None
    steps = "\n".join(
        f"""  %p{array} = getelementptr double, ptr %{array}, i64 %i
  call void asm sideeffect "{instruction}", "r,~{{memory}}"(ptr %p{array})"""
        for array in "abc"
    )
    return f"""
define void @{name}(i64 %first, i64 %last, ptr %a, ptr %b, ptr %c) {{
entry:
  br label %loop
loop:
  %i = phi i64 [%first, %entry], [%next, %loop]
{steps}
  %next = add i64 %i, 8
  %more = icmp ult i64 %next, %last
  br i1 %more, label %loop, label %exit
exit:
  ret void
}}
"""


CACHED_TRIAD_VECTORS = 4  # of an iteration of the inner loop: counting costs next to nothing


def cached_triad_code(name: str, lanes: int) -> str:
    """Return LLVM code of `void name(i64 iterations, i64 length, double *a, double *b, double *c)`: c = a + 3 b.

    The stores are ordinary ones, so that arrays that fit in a cache stay there. `length` is a multiple of
    `CACHED_TRIAD_VECTORS * lanes` and the arrays are aligned to 64 bytes.
    """
    vector = f"<{lanes} x double>"
    three = ", ".join(["double 3.0"] * lanes)
    steps = "\n".join(_cached_step(number, lanes, vector, three) for number in range(CACHED_TRIAD_VECTORS))
    return f"""
declare {vector} @llvm.fmuladd.v{lanes}f64({vector}, {vector}, {vector})
define void @{name}(i64 %iterations, i64 %length, ptr %a, ptr %b, ptr %c) {ATTRIBUTES} {{
entry:
  br label %pass
pass:
  %t = phi i64 [0, %entry], [%after, %pass_end]
  br label %loop
loop:
  %i = phi i64 [0, %pass], [%next, %loop]
{steps}
  %next = add i64 %i, {lanes * CACHED_TRIAD_VECTORS}
  %more = icmp ult i64 %next, %length
  br i1 %more, label %loop, label %pass_end
pass_end:
  %after = add i64 %t, 1
  %again = icmp ult i64 %after, %iterations
  br i1 %again, label %pass, label %exit
exit:
  ret void
}}
"""


def _cached_step(number: int, lanes: int, vector: str, three: str) -> str:
    """Return the code of one vector of the triad, `number` vectors after the loop's index."""
    return f"""  %i{number} = add i64 %i, {number * lanes}
  %pa{number} = getelementptr double, ptr %a, i64 %i{number}
  %pb{number} = getelementptr double, ptr %b, i64 %i{number}
  %pc{number} = getelementptr double, ptr %c, i64 %i{number}
  %va{number} = load {vector}, ptr %pa{number}, align {8 * lanes}
  %vb{number} = load {vector}, ptr %pb{number}, align {8 * lanes}
  %vc{number} = call {vector} @llvm.fmuladd.v{lanes}f64({vector} %vb{number}, {vector} <{three}>, {vector} %va{number})
  store {vector} %vc{number}, ptr %pc{number}, align {8 * lanes}"""
