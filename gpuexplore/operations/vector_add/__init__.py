"""Vector addition: c = a + b, (n) + (n) -> (n), n FLOPs.

On the roofline: one FLOP for two elements read and one written (1/12 FLOP/byte in fp32), so it is
memory-bound at every size: the device with the faster memory wins, not the one with more FLOP/s.
"""

import numpy as np

from gpuexplore.core.model import Shape
from gpuexplore.kernels.geometry import ELEMENT_PER_THREAD, GRID_STRIDE
from gpuexplore.operations.contract import Example, Preset
from gpuexplore.operations.families import element_wise
from gpuexplore.operations.implementation import EVERY_DTYPE, TORCH_GRAIN, row

OPERATION = element_wise(
    name="vector_add",
    title="Vector addition",
    formula="(n) + (n) → (n)",
    about="One operation for every three numbers moved: memory-bound.",
    operands=2,
    flops_per_element=1,
    multiply_adds=False,
    reference=np.add,
    implementations=(
        row("numpy", "numpy.add: one thread, vectorised", calls="numpy.add", one_thread=EVERY_DTYPE),
        row("numba_cpu", "a parallel Numba loop over the elements, 16-bit formats widened to fp32"),
        row(
            "numba_cuda",
            "one thread per element, as in the notebook: each waits for its own two loads",
            geometry=ELEMENT_PER_THREAD,
            name="numba-cuda-naive",
            rung=True,
            export="NAIVE",
        ),
        row(
            "numba_cuda",
            "a grid that strides, four loads of 16 bytes in flight: fewer threads hide more of the memory's latency",
            geometry=GRID_STRIDE,
        ),
        row("torch", "torch.add", vendor_library=True, calls="torch.add", one_thread_up_to=TORCH_GRAIN),
        row("cupy", "cupy.add: an element-wise kernel", calls="cupy.add"),
    ),
    examples=(Example(Shape.of(n=7), flop_count=7, fp32_bytes=4 * (7 + 7 + 7), terms=1),),
    presets=(
        Preset("notebook-5466", Shape.of(n=5466), "the notebook's launch arithmetic: 6 blocks of 1024 threads"),
        Preset(
            "notebook-100000",
            Shape.of(n=100_000),
            "the notebook's vector addition: too little work to make up for the launch, so its GPU lost",
        ),
    ),
)
