"""The machine code (SASS) of a kernel, from its cubin, by NVIDIA's disassembler; no GPU is needed."""

from gpuexplore.kernels.sass.facts import LoopFacts, facts_of
from gpuexplore.kernels.sass.instruction import Instruction
from gpuexplore.kernels.sass.loops import Loop, loops, main_loop
from gpuexplore.kernels.sass.mix import Mix, mix_of

__all__ = ["Instruction", "Loop", "LoopFacts", "Mix", "facts_of", "loops", "main_loop", "mix_of"]
