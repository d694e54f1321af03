"""Vector addition: c = a + b, (n) + (n) -> (n), n FLOPs.

On the roofline: one FLOP for two elements read and one written (1/12 FLOP/byte in fp32), so it is
memory-bound at every size: the device with the faster memory wins, not the one with more FLOP/s.
"""

import numpy as np

from gpuexplore.model import Shape
from gpuexplore.operations.contract import WIDENED, Implementation, Operation, Preset
from gpuexplore.operations.vector_add.geometry import ONE_EACH, STRIDED

OPERATION = Operation(
    name="vector_add",
    title="Vector addition",
    formula="(n) + (n) → (n)",
    about="One operation for every three numbers moved: memory bandwidth decides, arithmetic waits.",
    axes=("n",),
    limits={"n": 2**31},
    default_sizes=(10_000, 100_000, 1_000_000, 4_000_000),
    shape_of_size=lambda size: Shape.of(n=size),
    inputs=lambda shape: ((shape["n"],), (shape["n"],)),
    output=lambda shape: (shape["n"],),
    flop_count=lambda shape: shape["n"],
    reference=np.add,
    reduction_length=lambda _: 1,
    implementations=(
        Implementation(
            "numpy", "numpy_ufunc", "numpy", "vector", "numpy.add: one thread, vectorised", arithmetic=WIDENED
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
            "numba-cuda-naive",
            "numba_cuda_naive",
            "numba_cuda",
            "vector",
            "one thread an element, as the notebook has it: each waits for its own two loads",
            arithmetic=WIDENED,
            rung=True,
            geometry=ONE_EACH,
        ),
        Implementation(
            "numba-cuda",
            "numba_cuda_strided",
            "numba_cuda",
            "vector",
            "a grid that strides, 16 bytes a thread at a time: fewer instructions hide more of the memory's latency",
            arithmetic=WIDENED,
            geometry=STRIDED,
        ),
        Implementation("torch", "torch_elementwise", "torch", "vector", "torch.add"),
        Implementation("cupy", "cupy_ufunc", "cupy", "vector", "cupy.add: an element-wise kernel", optional=True),
    ),
    presets=(
        Preset("notebook-5466", Shape.of(n=5466), "the notebook's launch arithmetic: 6 blocks of 1024 threads"),
        Preset(
            "notebook-100000",
            Shape.of(n=100_000),
            "the notebook's vector addition: too little work to pay for a launch, so its GPU lost",
        ),
    ),
)
