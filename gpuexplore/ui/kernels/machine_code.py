"""A kernel's machine code on a page: its main loop, what it consists of, and the rate it allows on the chosen GPU."""

from math import prod

import streamlit as st

from gpuexplore.analysis.kernels.instruction_bound import InstructionBound, flop_per_byte, instruction_bound
from gpuexplore.analysis.kernels.occupancy import occupancy
from gpuexplore.analysis.kernels.target_gpu import TargetGpu
from gpuexplore.devices import accelerator_named
from gpuexplore.errors import InvalidInput, Unsupported
from gpuexplore.kernels.compiled_kernel import CompiledKernel
from gpuexplore.kernels.sass import Instruction, LoopFacts, facts_of, main_loop, mix_of
from gpuexplore.kernels.sass.disassembler import disassembled
from gpuexplore.ui.kernels.choice import KernelChoice
from gpuexplore.ui.kernels.code import CODE_HEIGHT
from gpuexplore.ui.kernels.facts import compile_choice
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.shared import Shared
from gpuexplore.units import format_bytes_per_s, format_flop_per_s, format_percent

DISASSEMBLED: Shared[tuple[Instruction, ...]] = Shared(100)


def show_machine_code(choice: KernelChoice, gpu: TargetGpu) -> None:
    """Show the main loop in machine code and the rate it allows; or why it cannot be shown."""
    st.header("Machine code", anchor="sass")
    st.caption(
        f"What the multiprocessors of {gpu.name} execute (SASS), and the rate it allows at most: no GPU is needed."
    )
    made = compile_choice(choice, gpu)
    if isinstance(made, str):
        st.warning(plain(made), icon=":material/block:")
        return
    try:
        code = DISASSEMBLED.get(made.cubin, lambda: disassembled(made.cubin))
    except Unsupported as error:
        st.warning(plain(str(error)), icon=":material/block:")
        return
    facts = facts_of(code)
    _show_bound(facts, _bound(facts, made, choice, gpu))
    _show_code(code, made, choice)


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


def _show_bound(facts: LoopFacts, bound: InstructionBound) -> None:
    work = facts.multiply_adds + facts.tensor
    at_most = format_flop_per_s(bound.flop_per_s) if bound.flop_per_s else format_bytes_per_s(bound.bytes_per_s)
    share = format_percent(bound.share_of_peak) if bound.share_of_peak else "–"
    figures = {
        "Upper bound": (
            at_most,
            "At the rated clock no run of this code is faster unless its arrays stay in the caches. Not a measurement",
        ),
        "Roofline": (
            format_flop_per_s(bound.roofline_flop_per_s) if bound.roofline_flop_per_s else "–",
            "What the peak of its units and the memory's bandwidth allow any kernel at this shape",
        ),
        "Of its units' peak": (share, "The bound over the peak of the units that compute, as MFU is"),
        "Main loop": (str(facts.instructions) if facts.is_loop else "none", "Instructions of one pass"),
        "Multiply-adds": (
            f"{work} ({format_percent(facts.multiply_add_share)})" if work else "none",
            "FFMA, HMMA and their like in one pass, and their share of its instructions",
        ),
    }
    for column, (name, (value, about)) in zip(st.columns(len(figures)), figures.items(), strict=True):
        column.metric(name, value, help=about)
    if bound.evidence:
        st.markdown(f"**First bottleneck:** {bound.evidence}.")


def _show_code(code: tuple[Instruction, ...], made: CompiledKernel, choice: KernelChoice) -> None:
    loop = main_loop(code)
    whole = st.toggle(f"Show all {len(code):,} instructions", key="kernels.sass") if loop else True
    shown = code if whole or loop is None else loop.instructions
    moved = mix_of(shown)
    text = "\n".join(map(str, shown))
    st.code(text, language="asm", line_numbers=True, height=CODE_HEIGHT)
    told = [f"{count} {name}" for name, count in (*moved.loads.items(), *moved.stores.items())]
    loads = f" Loads and stores by bits per thread: {', '.join(told)}." if told else ""
    st.caption(f"{'The whole kernel' if whole else 'The main loop'} for {made.target}, CUDA {made.toolkit}.{loads}")
    st.download_button(
        "SASS",
        "\n".join(map(str, code)),
        file_name=f"{choice.operation.name}-{choice.implementation.name}-{choice.dtype}-{made.target}.sass",
        icon=":material/download:",
        on_click="ignore",
    )
