"""An interpreter of PTX: runs the kernels of our own on a machine without a GPU, and finds what they must not do.

The lanes of a warp are NumPy vectors. Races, accesses out of bounds, misaligned or of what nobody wrote are found;
times are not told.
"""

from gpuexplore.kernels.ptx.banks import BANK_BYTES, BANKS, BankCounter, wavefronts, words_of
from gpuexplore.kernels.ptx.block import Grid
from gpuexplore.kernels.ptx.decode import OPCODES, Event, Observer
from gpuexplore.kernels.ptx.device_memory import addresses_of, element_at
from gpuexplore.kernels.ptx.machine import Options, numba_arguments, run
from gpuexplore.kernels.ptx.parse import parse
from gpuexplore.kernels.ptx.program import Instruction, Program
from gpuexplore.kernels.ptx.registers import LANES
from gpuexplore.kernels.ptx.report import BankUse, Fault, FaultKind, Report
from gpuexplore.kernels.ptx.trace import Access, Trace, TraceStep

__all__ = [
    "BANKS",
    "BANK_BYTES",
    "LANES",
    "OPCODES",
    "Access",
    "BankCounter",
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
    "Trace",
    "TraceStep",
    "addresses_of",
    "element_at",
    "numba_arguments",
    "parse",
    "run",
    "wavefronts",
    "words_of",
]
