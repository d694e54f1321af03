"""The machine code (SASS) of a kernel, from its cubin, by NVIDIA's disassembler; no GPU is needed."""

from gpuexplore.kernels.sass.facts import LoopFacts, Mix, facts_of, mix_of
from gpuexplore.kernels.sass.instruction import Instruction
from gpuexplore.kernels.sass.listing import (
    HEADER,
    LEGEND,
    UNKNOWN_LIVE,
    Control,
    Line,
    as_text,
    control_of,
    controls_of,
    lines_of,
    most_live,
)
from gpuexplore.kernels.sass.loops import Loop, loops, main_loop

__all__ = [
    "HEADER",
    "LEGEND",
    "UNKNOWN_LIVE",
    "Control",
    "Instruction",
    "Line",
    "Loop",
    "LoopFacts",
    "Mix",
    "as_text",
    "control_of",
    "controls_of",
    "facts_of",
    "lines_of",
    "loops",
    "main_loop",
    "mix_of",
    "most_live",
]
