"""An interpreter of PTX: runs the kernels of our own on a machine without a GPU, and finds what they must not do.

The lanes of a warp are NumPy vectors. Races, accesses out of bounds, misaligned or of what nobody wrote are found;
times are not told. Reads of device memory that another thread writes in the same launch are not looked for.
"""

from gpuexplore.kernels.ptx.block import Grid
from gpuexplore.kernels.ptx.decode import OPCODES, Event, Observer
from gpuexplore.kernels.ptx.device_memory import element_at
from gpuexplore.kernels.ptx.machine import Options, numba_arguments, run
from gpuexplore.kernels.ptx.parse import parse
from gpuexplore.kernels.ptx.program import Instruction, Program
from gpuexplore.kernels.ptx.report import BankUse, Fault, FaultKind, Report

__all__ = [
    "OPCODES",
    "BankUse",
    "Event",
    "Fault",
    "FaultKind",
    "Grid",
    "Instruction",
    "Observer",
    "Options",
    "Program",
    "Report",
    "element_at",
    "numba_arguments",
    "parse",
    "run",
]
