"""Runs the PTX of our own kernels on a case's inputs, and judges what they wrote against the float64 reference."""

from functools import cache

import numpy as np

from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.model import Shape
from gpuexplore.kernels.cuda_compile import array_type, compile_kernel
from gpuexplore.kernels.ptx import Grid, LaunchOptions, parse, run
from gpuexplore.measure.check.elements import judge
from gpuexplore.measure.check.inputs import Reference, make_inputs
from gpuexplore.operations import OPERATIONS
from gpuexplore.operations.kernel_targets import compile_for, kernel_of
from tests.operations.shapes import simulated_shapes

EXECUTED = ("8.0", "9.0")  # of the compute capabilities: where instructions for asynchronous work came
# shapes in which there are more tiles along k than are on their way
DEEP = {
    "matmul": [(65, 328, 136)],
    "linear": [(65, 328, 136)],
    "batched_matmul": [(1, 2, 65, 328, 136, 2)],
    # where images end within a tile; two rows of tiles; an image smaller than the window, as wide as the masks reach
    "conv2d": [(2, 32, 8, 9, 129, 3), (3, 32, 2, 6, 257, 1), (1, 32, 4, 1, 5, 7)],
    "attention": [(1, 2, 300, 56)],  # along the keys
}
# shapes in which a tile of 256 rows has neighbours, and rows are whole vectors
TALL = {
    "matmul": (257, 24, 132),
    "linear": (257, 24, 132),
    "batched_matmul": (1, 2, 257, 24, 132, 2),
}


@cache
def ptx_of(key, capability, dimensions, block=None):
    """Return the PTX of a kernel, named as in `matmul/numba-cuda-vector/fp32`, by default at its default block.

    `dimensions`: of its arrays, where they are not those it is usually compiled for.
    """
    operation, implementation, dtype = found(key)
    if dimensions is None:
        return compile_for(operation, implementation, dtype, block, capability).ptx
    kernel = kernel_of(operation, implementation)
    block = kernel.geometry.checked(block)
    signature = [array_type(dtype.storage.name, count) for count in dimensions]
    options = kernel.jit_options(dtype, block)
    return compile_kernel(kernel.make(dtype, block), signature, compute_capability=capability, options=options).ptx


def unusual_dimensions(operation, shape):
    """Return how many axes the arrays of a case have; None where it is as many as usual."""
    usual = operation.shape_of_size(2)
    given, usual = (tuple(map(len, (*operation.inputs(each), operation.output(each)))) for each in (shape, usual))
    return None if given == usual else given


def found(key):
    operation, implementation, dtype = key.split("/")
    return OPERATIONS[operation], OPERATIONS[operation].implementation_named(implementation), DTYPES[dtype]


@cache
def case(key, lengths):
    """Return the shape, the inputs and the reference of a case."""
    operation, _, dtype = found(key)
    shape = Shape(tuple(zip(operation.axes, lengths, strict=True)))
    inputs = make_inputs(operation, shape, dtype, "normal")
    return shape, inputs, Reference(operation, dtype, inputs)


def launched(key, lengths, text=None, capability="8.0", block=None, **options):
    """Return the report and the accuracy of one launch; `text`: the PTX, where it is another than compiled here."""
    operation, implementation, dtype = found(key)
    shape, inputs, reference = case(key, lengths)
    out = np.zeros(operation.output(shape), dtype.storage)
    geometry, kernel = implementation.geometry.launch(out.shape, block), kernel_of(operation, implementation)
    arrays = [array.reshape(-1) if kernel.flat else array for array in (*inputs, out)]
    dimensions = unusual_dimensions(operation, shape)
    if text is None or dimensions is not None:
        text = ptx_of(key, capability, dimensions, block)
    grid = Grid(geometry.grid, geometry.block, dynamic_shared_bytes=dynamic_shared_bytes(key, block))
    report = run(parse(text), grid, arrays, LaunchOptions(unwritten=(len(inputs),), **options))
    return report, judge(dtype.widen(report.arrays[-1].reshape(out.shape)), reference, shape)


def dynamic_shared_bytes(key, block=None):
    """Return the bytes of shared memory that a kernel's launch asks for."""
    operation, implementation, dtype = found(key)
    return kernel_of(operation, implementation).dynamic_shared_bytes(dtype, implementation.geometry.checked(block))


def lengths_for(key):
    """Return the lengths that a kernel is run at: those of its operation, and such that its whole tiles need."""
    operation, _, _ = found(key)
    lengths = [*map(lengths_of, simulated_shapes(operation))]
    if dynamic_shared_bytes(key):
        return lengths + DEEP[operation.name]
    return lengths if operation.name not in TALL or fills_a_tile(key) else [*lengths, TALL[operation.name]]


def fills_a_tile(key):
    """Return whether one of the shapes of a kernel's operation is as large as the tile of a block."""
    operation, implementation, _ = found(key)
    geometry = implementation.geometry
    tile = geometry.tile(geometry.checked(None))
    outputs = [geometry.domain(operation.output(shape)) for shape in simulated_shapes(operation)]
    return any(all(length >= least for length, least in zip(lengths, tile, strict=True)) for lengths in outputs)


def lengths_of(shape):
    """Return the lengths of a shape's axes, in their order."""
    return tuple(length for _, length in shape.axes)


def is_asynchronous(report):
    """Whether a launch had copies or products that arrive late or early."""
    return any("async" in name for name in report.executed)


def is_right(report, accuracy):
    """Whether a launch had no fault, wrote everything and computed the right numbers."""
    return not report.faults and accuracy.within and accuracy.worst.share <= 1 and report.unwritten[-1] == 0
