"""A kernel's machine code on a page: its main loop, what it consists of, and the rate it allows on the chosen GPU."""

from math import prod

import streamlit as st

from gpuexplore.analysis.kernels.instruction_bound import InstructionBound, flop_per_byte, instruction_bound
from gpuexplore.analysis.kernels.occupancy import TargetGpu, occupancy
from gpuexplore.devices import accelerator_named
from gpuexplore.errors import InvalidInput, Unsupported
from gpuexplore.kernels.compiled_kernel import CompiledKernel
from gpuexplore.kernels.files.machine_code import lines_of_ours
from gpuexplore.kernels.sass import Line, LoopFacts, facts_of
from gpuexplore.ui.kernels.choice import KernelChoice
from gpuexplore.ui.kernels.code_lines import bound_figures, show_evidence, show_figures, show_lines
from gpuexplore.ui.kernels.facts import compile_choice, show_on_its_way
from gpuexplore.ui.kernels.file_code import show_file_code
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.shared import Shared
from gpuexplore.ui.shared.later import Later
from gpuexplore.units import format_flop_per_s

DISASSEMBLED: Shared[tuple[Line, ...]] = Shared(100)
DISASSEMBLING: Later[tuple[Line, ...]] = Later()
OURS, FILE = "This kernel", "A file: PTX or a cubin"
BOUND = "At the rated clock no run of this code is faster unless its arrays stay in the caches. Not a measurement"
ROOFLINE = "What the peak of its units and the memory's bandwidth allow any kernel at this shape"


def show_machine_code(choice: KernelChoice, gpu: TargetGpu) -> None:
    """Show the main loop in machine code and the rate it allows; or why it cannot be shown."""
    st.header("Machine code", anchor="sass")
    st.caption(
        f"What the multiprocessors of {gpu.name} execute (SASS), and the rate it allows at most: no GPU is needed."
    )
    if st.segmented_control("Of", (OURS, FILE), default=OURS, required=True, key="kernels.code_of") == FILE:
        show_file_code(gpu)
    else:
        _show_ours(choice, gpu)


def _show_ours(choice: KernelChoice, gpu: TargetGpu) -> None:
    made = compile_choice(choice, gpu)
    if made is None:
        show_on_its_way("Compiling: the machine code follows")
        return
    if isinstance(made, str):
        st.warning(plain(made), icon=":material/block:")
        return
    try:
        lines = _lines(made.cubin)
    except Unsupported as error:
        st.warning(plain(str(error)), icon=":material/block:")
        return
    if lines is None:
        show_on_its_way("Disassembling: the machine code follows")
        return
    facts = facts_of([line.instruction for line in lines])
    bound = _bound(facts, made, choice, gpu)
    roofline = format_flop_per_s(bound.roofline_flop_per_s) if bound.roofline_flop_per_s else "–"
    at_most, *others = bound_figures(facts, bound, of_what=BOUND).items()
    show_figures(dict([at_most, ("Roofline", (roofline, ROOFLINE)), *others]))
    show_evidence(bound)
    name = f"{choice.operation.name}-{choice.implementation.name}-{choice.dtype}-{made.target}.sass"
    show_lines(lines, f"{made.target}, CUDA {made.toolkit}", key="kernels.sass", file_name=name)


def _lines(cubin: bytes) -> tuple[Line, ...] | None:
    """Return the lines of a kernel; None while they are made."""
    known = DISASSEMBLED.known(cubin)
    return known or DISASSEMBLING.get(cubin, lambda: DISASSEMBLED.get(cubin, lambda: lines_of_ours(cubin)))


def _bound(facts: LoopFacts, made: CompiledKernel, choice: KernelChoice, gpu: TargetGpu) -> InstructionBound:
    """Return what follows for the chosen GPU; nothing for the visitor's own, whose rates are unknown."""
    row = accelerator_named(gpu.key)
    if row is None or choice.block is None:
        return InstructionBound()
    try:
        full = occupancy(
            gpu.limits,
            threads_per_block=prod(choice.block),
            registers_per_thread=made.registers_per_thread,
            shared_bytes_per_block=made.shared_bytes,
        )
    except InvalidInput:  # said above: a block needs more than there is
        return InstructionBound()
    intensity = flop_per_byte(choice.operation, choice.shape, choice.dtype)
    return instruction_bound(facts, row, full, intensity)
