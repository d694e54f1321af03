"""STREAM's triad: out = a + 3·b, (n) + 3·(n) -> (n), 2·n FLOPs.

On the roofline: one multiply-add for two elements read and one written (1/6 FLOP/byte in fp32), so it is
memory-bound at every size. J. McCalpin's STREAM, https://www.cs.virginia.edu/stream/, rates memory by it.
"""

from gpuexplore.model import Shape
from gpuexplore.operations.contract import WIDENED, Array, Implementation, Operation
from gpuexplore.operations.triad.geometry import STRIDES

FACTOR = 3.0


def _reference(a: Array, b: Array) -> Array:
    return a + FACTOR * b


OPERATION = Operation(
    name="triad",
    title="STREAM triad",
    formula="(n) + 3·(n) → (n)",
    about="The usual test of memory bandwidth: a multiply-add for every three numbers moved.",
    axes=("n",),
    limits={"n": 2**31},
    default_sizes=(10_000, 100_000, 1_000_000, 4_000_000),
    shape_of_size=lambda size: Shape.of(n=size),
    inputs=lambda shape: ((shape["n"],), (shape["n"],)),
    output=lambda shape: (shape["n"],),
    flop_count=lambda shape: 2 * shape["n"],
    reference=_reference,
    reduction_length=lambda _: 2,
    implementations=(
        Implementation(
            "numpy",
            "numpy_ufunc",
            "numpy",
            "vector",
            "numpy.multiply, then numpy.add: one thread, two passes, 16-bit formats through an fp32 buffer",
            arithmetic=WIDENED,
        ),
        Implementation(
            "numba-cpu",
            "numba_cpu_loop",
            "numba_cpu",
            "vector",
            "a parallel Numba loop in one pass, 16-bit formats widened to fp32",
            arithmetic=WIDENED,
        ),
        Implementation(
            "numba-cuda",
            "numba_cuda_strides",
            "numba_cuda",
            "vector",
            "a Numba CUDA kernel: a grid that strides through the vectors",
            arithmetic=WIDENED,
            geometry=STRIDES,
        ),
        Implementation(
            "torch",
            "torch_elementwise",
            "torch",
            "vector",
            "torch.addcmul on a CPU, torch.add with alpha=3 on CUDA: one pass",
        ),
        Implementation(
            "torch-compile",
            "torch_compile_fused",
            "torch_compile",
            "vector",
            "torch.compile of a product and a sum: fused into one kernel and one pass",
            optional=True,
        ),
    ),
)
