"""A kernel written by hand that adds two vectors through shared memory, and what the interpreter tells of it."""

from functools import cache

from gpuexplore.core.model import Shape
from gpuexplore.measure.check.interpreted import KernelLaunch, interpreted
from tests.kernels.ptx.snippets import PARTS, kernel

THREADS = 64


def adding(pitch=4, sum_="add.f32", last="", stride=4):
    """Return the PTX: each thread keeps its number `pitch` bytes from the next in shared memory, over a barrier."""
    first = "\n".join(f"ld.param.u64 %d{i}, [p{i * PARTS + 4}]; add.s64 %d{i}, %d{i}, %d20;" for i in range(3))
    return kernel(
        f"""mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.s32 %r2, %r1, %r3, %r0;
        mul.wide.u32 %d20, %r2, {stride}; {first}
        ld.global.f32 %f0, [%d0];
        mul.lo.u32 %r4, %r0, {pitch}; mov.u32 %r5, tile; add.u32 %r5, %r5, %r4;
        st.shared.f32 [%r5], %f0;
        bar.sync 0;
        ld.shared.f32 %f2, [%r5];
        ld.global.f32 %f1, [%d1];
        {sum_} %f3, %f1, %f2;
        {last} st.global.f32 [%d2], %f3;""",
        arrays=3,
        shared=THREADS * pitch,
    )


def request(ptx, blocks=2, n=None, operation="vector_add", **given):
    """Return the request to run a kernel on a vector for each thread."""
    shape = Shape.of(n=n or blocks * THREADS)
    return KernelLaunch(
        ptx, operation, "fp32", **{"shape": shape, "grid": (blocks, 1, 1), "threads": (THREADS, 1, 1)} | given
    )


@cache
def block_run(pitch=4):
    """Return what running it told."""
    return interpreted(request(adding(pitch)))
