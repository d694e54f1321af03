"""An exhibit as the compiler sees it: PTX, registers, spills. Nothing is launched."""

from importlib import import_module

from gpuexplore.kernels.compiled_kernel import CompiledKernel
from gpuexplore.kernels.cuda_compile import array_type, compile_kernel
from gpuexplore.kernels.exhibits import Exhibit


def compile_exhibit(exhibit: Exhibit, compute_capability: str) -> CompiledKernel:
    """Return a notebook's kernel compiled for fp32 arrays, as `cuda.jit` without options does it.

    Raises:
        Unsupported: the CUDA toolkit that is installed does not know the compute capability.
    """
    module = import_module(f"gpuexplore.kernels.exhibits.{exhibit.module}")
    signature = [array_type("float32", dimensions) for dimensions in module.DIMENSIONS]
    return compile_kernel(module.make(), signature, compute_capability=compute_capability, options={})
