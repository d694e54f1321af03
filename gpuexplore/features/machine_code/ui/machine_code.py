"""A kernel's machine code on a page, ours or of a file: its main loop, and the rate it allows on the chosen GPU."""

from hashlib import sha256
from math import prod

import streamlit as st

from gpuexplore.analysis.occupancy import TargetGpu, occupancy
from gpuexplore.core.errors import GpuExploreError, InvalidInput, Unsupported
from gpuexplore.core.units import format_bytes, format_flop_per_s, format_percent
from gpuexplore.features.machine_code.analysis import (
    InstructionBound,
    flop_per_byte,
    instruction_bound,
)
from gpuexplore.features.machine_code.kernel_files import (
    ORIGINS,
    FileKernel,
    asks_for_shared,
    file_kernel,
    machine_code_of,
    read_dynamic_shared,
    registers_in_words,
)
from gpuexplore.features.machine_code.ui import Figures, KernelChoice, show_figures
from gpuexplore.features.machine_code.ui.code_lines import (
    bound_figures,
    show_evidence,
    show_lines,
)
from gpuexplore.features.machine_code.ui.facts import compiled_here, show_on_its_way, spills_words
from gpuexplore.hardware import accelerator_named
from gpuexplore.jobs.reading import read_apart
from gpuexplore.kernels.files import MOST_BYTES, SUFFIXES, KernelFile
from gpuexplore.kernels.files.machine_code import CompiledKernel, MachineCode, lines_of_ours
from gpuexplore.kernels.geometry import Block, read_block
from gpuexplore.kernels.sass import Line, LoopFacts, facts_of, most_live
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.shared import Shared, moment
from gpuexplore.ui.shared.later import Later
from gpuexplore.ui.turns import run_queued
from gpuexplore.ui.url_widgets import show_problem

CODES: Shared[MachineCode] = Shared(50)
FILES: Shared[KernelFile] = Shared(20)
LOOKS = 100  # a file that could not be read is tried again after so many
HELP = (
    f"At most {format_bytes(MOST_BYTES)}. PTX is what `nvcc -ptx`, NVRTC, Triton and numba-cuda write; a cubin is "
    "machine code for one compute capability. The file is read and forgotten."
)
UNNAMED = (
    "The file declares shared memory whose size a launch gives. Name its bytes above: until then occupancy counts none "
    "of it."
)
FILE_BOUND = (
    "At the rated clock these instructions are no faster. Memory is not part of it: what they have to move is unknown"
)

DISASSEMBLED: Shared[tuple[Line, ...]] = Shared(100)
DISASSEMBLING: Later[tuple[Line, ...]] = Later()
OURS = "This kernel"
FILE = "A file: PTX or a cubin"
BOUND = "At the rated clock no run of this code is faster unless its arrays stay in the caches. Not a measurement"
ROOFLINE = "What the peak of its units and the memory's bandwidth allow any kernel at this shape"


def show_machine_code(choice: KernelChoice, gpu: TargetGpu) -> None:
    """Show the main loop in machine code and the rate it allows; or why it cannot be shown."""
    st.header("Machine code", anchor="sass")
    st.caption(
        f"What the multiprocessors of {gpu.name} execute (SASS), and the rate it allows at most: no GPU is needed."
    )
    if st.segmented_control("Of", (OURS, FILE), default=OURS, required=True, key="kernels.code_of") == FILE:
        _show_file_code(gpu)
    else:
        _show_ours(choice, gpu)


def _show_ours(choice: KernelChoice, gpu: TargetGpu) -> None:
    made = compiled_here(choice, gpu, "Compiling: the machine code follows")
    if made is None:
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
    return instruction_bound(facts, row, full, flop_per_byte(choice.operation, choice.shape, choice.dtype))


def _show_file_code(gpu: TargetGpu) -> None:
    """Let a visitor drop a file, of which nothing is kept, and show the machine code of a kernel; or why it cannot."""
    suffixes = [suffix.removeprefix(".") for suffix in SUFFIXES]
    dropped = st.file_uploader("PTX or a cubin", type=suffixes, key="kernels.file", help=HELP)
    if dropped is None:
        st.info("Drop a file, and see what the GPU executes of it: no GPU is needed.", icon=":material/upload_file:")
        return
    try:
        content = dropped.getvalue()
        digest = sha256(content).hexdigest()
        with st.spinner(f"Reading {plain(dropped.name)} …"):
            file: KernelFile = FILES.get(
                digest, lambda: read_apart("gpuexplore.kernels.files:read_kernel_file", content)
            )
        name, block, dynamic_shared_bytes = _choose(file, gpu)
        of = (digest, name, gpu.compute_capability)
        code: MachineCode = run_queued(
            ("file", *of, moment(LOOKS)),
            lambda: CODES.get(of, lambda: machine_code_of(file, name, gpu.compute_capability)),
            f"Reading the machine code for compute capability {gpu.compute_capability}",
        )
        row = accelerator_named(gpu.key)
        found = file_kernel(code, gpu.limits, row, block=block, dynamic_shared_bytes=dynamic_shared_bytes)
    except Unsupported as error:
        st.warning(plain(str(error)), icon=":material/block:")
    except GpuExploreError as error:
        show_problem(error)
    else:
        _show(code, found)


def _choose(file: KernelFile, gpu: TargetGpu) -> tuple[str, Block | None, int]:
    """Draw the choices of a kernel and its launch, and return them; a block that was not named is None.

    Raises:
        InvalidInput: a block or shared memory that no launch can have.
    """
    left, middle, right = st.columns([4, 2, 2], gap="medium")
    name: str = left.selectbox("Kernel", [kernel.name for kernel in file.kernels], key="kernels.file_kernel")
    threads = middle.text_input(
        "Block (threads)",
        key="kernels.file_block",
        help="Threads along x, y and z, like `16,16`. Empty: what the file says, else 256.",
        placeholder="of the file",
    )
    added = right.text_input(
        "Dynamic shared memory (bytes)",
        key="kernels.file_shared",
        help="Bytes that the launch adds to the shared memory the kernel declares, like `16384`.",
        placeholder="0",
    )
    block = read_block(threads, gpu.limits) if threads.strip() else None
    return name, block, read_dynamic_shared(added.strip() or None, gpu.limits)


def _show(code: MachineCode, found: FileKernel) -> None:
    show_figures(_figures(code, found))
    block = " × ".join(map(str, found.block))
    st.markdown(f"Blocks of {block} threads: {ORIGINS[found.block_origin]}. {_limit(found)}")
    if asks_for_shared(code, found.dynamic_shared_bytes):
        st.warning(UNNAMED, icon=":material/memory:")
    if code.reallocated:
        st.markdown(f"{registers_in_words(code)}: occupancy is that of the registers at launch.")
    show_figures(bound_figures(found.facts, found.bound, of_what=FILE_BOUND))
    show_evidence(found.bound)
    made_by = (
        f"{code.target}, assembled by CUDA {code.toolkit}" if code.toolkit else f"{code.target}, as the cubin has it"
    )
    show_lines(code.lines, made_by, key="kernels.file_sass", file_name=f"{code.kernel[:60]}-{code.target}.sass")


def _figures(code: MachineCode, found: FileKernel) -> Figures:
    full = found.occupancy
    return {
        "Occupancy": (
            format_percent(full.occupancy) if full else "–",
            "Active warps per multiprocessor, of the most it holds",
        ),
        "Registers": (_number(code.registers_per_thread), "32-bit registers per thread"),
        "Live registers": (_number(most_live(code.lines)), "The most registers of a thread that are in use at once"),
        "Shared memory": (format_bytes(code.shared_bytes + found.dynamic_shared_bytes), "Per block"),
        "Spills": (spills_words(code.spill_bytes), "Registers the compiler spilled to memory; a cubin does not tell"),
    }


def _number(count: int | None) -> str:
    return "–" if count is None else str(count)


def _limit(found: FileKernel) -> str:
    full = found.occupancy
    if full is None:
        return "Occupancy is unknown: the file does not say how many registers a thread has."
    if full.limiter is None:
        return f"No block fits on a multiprocessor: {full.reason}."
    return f"{full.active_warps} of {full.max_warps} warps per multiprocessor: {full.limited_by}."
