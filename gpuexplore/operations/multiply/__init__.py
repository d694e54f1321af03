"""Element-wise product: C = A * B, (m, n) * (m, n) -> (m, n), m·n FLOPs.

On the roofline: one FLOP for two elements read and one written (1/12 FLOP/byte in fp32), so it is
memory-bound at every size: the device with the faster memory wins, not the one with more FLOP/s.
"""

import numpy as np

from gpuexplore.core.model import Shape
from gpuexplore.kernels.geometry import GRID_STRIDE
from gpuexplore.operations.contract import Example, Preset
from gpuexplore.operations.families import element_wise
from gpuexplore.operations.implementation import EVERY_DTYPE, TORCH_GRAIN, row

OPERATION = element_wise(
    name="multiply",
    title="Element-wise product",
    formula="(m, n) ∘ (m, n) → (m, n)",
    about="One operation for every three numbers moved: memory-bound.",
    axes=("m", "n"),
    limits={"m": 2**24, "n": 2**24},
    default_sizes=(100, 300, 1000, 2000),
    shape_of_size=lambda size: Shape.of(m=size, n=size),
    operands=2,
    flops_per_element=1,
    multiply_adds=False,
    reference=np.multiply,
    implementations=(
        row("numpy", "numpy.multiply: one thread, vectorised", calls="numpy.multiply", one_thread=EVERY_DTYPE),
        row("numba_cpu", "a parallel Numba loop over the elements, 16-bit formats widened to fp32"),
        row(
            "numba_cuda",
            "a Numba CUDA kernel: a grid that strides through both, four loads of 16 bytes in flight",
            geometry=GRID_STRIDE,
        ),
        row("torch", "torch.mul", vendor_library=True, calls="torch.mul", one_thread_up_to=TORCH_GRAIN),
        row(
            "torch_compile",
            "torch.compile of a product: a generated kernel plus the guards of a compiled call",
        ),
    ),
    examples=(Example(Shape.of(m=2, n=3), flop_count=6, fp32_bytes=4 * (6 + 6 + 6), terms=1),),
    presets=(
        Preset(
            "notebook-1000", Shape.of(m=1000, n=1000), "the notebook's element-wise product on the CPU, then on CUDA"
        ),
    ),
    simulated=((1, 1), (257, 1), (16, 264), (129, 3)),
)
