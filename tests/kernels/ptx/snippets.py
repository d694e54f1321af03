"""Kernels of a few instructions, written by hand: each thread loads, computes and stores one number."""

import numpy as np

from gpuexplore.kernels.ptx import Grid, LaunchOptions, parse, run

WARP = 32
HEADER = """.version 8.0
.target sm_80
.address_size 64
.visible .entry kernel({parameters})
{{
    .reg .pred %p<8>;
    .reg .b16 %h<16>;
    .reg .b32 %r<64>;
    .reg .b64 %d<32>;
    .reg .f32 %f<16>;
    .reg .f64 %x<16>;
    .shared .align 16 .b8 tile[{shared}];
{body}
    ret;
}}
"""
PARTS = 7  # parameters of an array with one axis
REGISTERS = {1: "%h", 2: "%h", 4: "%r", 8: "%d"}


def kernel(body, *, arrays=1, shared=1024):
    """Return a kernel of some arrays with one axis."""
    names = ", ".join(f".param .u64 p{i}" for i in range(arrays * PARTS))
    return HEADER.format(parameters=names, body=body, shared=shared)


def pointers(arrays, scale=()):
    """Return instructions that put each array's address in `%d0`, `%d1`, ..., moved on by the thread's elements."""
    lines = ["mov.u32 %r0, %tid.x;"]
    for i in range(arrays):
        lines.append(f"ld.param.u64 %d{i}, [p{i * PARTS + 4}];")
        if i < len(scale):
            lines += [f"mul.wide.u32 %d20, %r0, {scale[i]};", f"add.s64 %d{i}, %d{i}, %d20;"]
    return "\n".join(lines)


def launch(text, *arrays, threads=WARP, blocks=1, dynamic=0, **options):
    """Run a kernel on copies of arrays; `dynamic`: bytes of shared memory that the launch adds."""
    return run(parse(text), Grid((blocks, 1, 1), (threads, 1, 1), dynamic), arrays, LaunchOptions(**options))


def computed(instruction, *sources, kind):
    """Return what an instruction makes of one number of each source per thread; operands: {0}, {1}, ..., {out}."""
    arrays = [*map(np.asarray, sources), np.zeros(WARP, kind)]
    widths = [array.dtype.itemsize for array in arrays]
    names = [f"{REGISTERS[width]}{i + 8}" for i, width in enumerate(widths)]
    last = len(sources)
    lines = [
        pointers(len(arrays), widths),
        *(f"ld.global.b{widths[i] * 8} {names[i]}, [%d{i}];" for i in range(last)),
        instruction.format(*names[:-1], out=names[-1]),
        f"st.global.b{widths[-1] * 8} [%d{last}], {names[-1]};",
    ]
    report = launch(kernel("\n".join(lines), arrays=len(arrays)), *arrays)
    assert report.faults == ()
    return report.arrays[-1]
