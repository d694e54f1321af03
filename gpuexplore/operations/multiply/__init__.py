"""Element-wise product: C = A * B, (m, n) * (m, n) -> (m, n), m·n FLOPs.

On the roofline: one FLOP for two elements read and one written (1/12 FLOP/byte in fp32), so it is
memory-bound at every size: the device with the faster memory wins, not the one with more FLOP/s.
"""

import numpy as np

from gpuexplore.model import Shape
from gpuexplore.operations.contract import WIDENED, Implementation, Operation, Preset
from gpuexplore.operations.multiply.geometry import ONE_EACH

OPERATION = Operation(
    name="multiply",
    title="Element-wise product",
    formula="(m, n) ∘ (m, n) → (m, n)",
    about="One operation for every three numbers moved: memory bandwidth decides, arithmetic waits.",
    axes=("m", "n"),
    limits={"m": 65536, "n": 65536},
    default_sizes=(100, 300, 1000, 2000),
    shape_of_size=lambda size: Shape.of(m=size, n=size),
    inputs=lambda shape: ((shape["m"], shape["n"]), (shape["m"], shape["n"])),
    output=lambda shape: (shape["m"], shape["n"]),
    flop_count=lambda shape: shape["m"] * shape["n"],
    reference=np.multiply,
    reduction_length=lambda _: 1,
    implementations=(
        Implementation(
            "numpy", "numpy_ufunc", "numpy", "vector", "numpy.multiply: one thread, vectorised", arithmetic=WIDENED
        ),
        Implementation(
            "numba-cpu",
            "numba_cpu_loop",
            "numba_cpu",
            "vector",
            "a parallel Numba loop over the elements, 16-bit formats widened to fp32",
            arithmetic=WIDENED,
        ),
        Implementation(
            "numba-cuda",
            "numba_cuda_elements",
            "numba_cuda",
            "vector",
            "a Numba CUDA kernel: one thread an element",
            arithmetic=WIDENED,
            geometry=ONE_EACH,
        ),
        Implementation("torch", "torch_elementwise", "torch", "vector", "torch.mul"),
        Implementation(
            "torch-compile",
            "torch_compile_fused",
            "torch_compile",
            "vector",
            "torch.compile of a product: a generated kernel behind the guards of a compiled call",
            optional=True,
        ),
    ),
    presets=(
        Preset(
            "notebook-1000", Shape.of(m=1000, n=1000), "the notebook's element-wise product on the CPU, then on CUDA"
        ),
    ),
)
