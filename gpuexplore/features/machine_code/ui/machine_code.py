"""A kernel's machine code on a page, ours or of a file: its main loop, and the rate it allows on the chosen GPU."""

import re
from hashlib import sha256
from importlib.resources import files
from math import prod
from textwrap import dedent

import streamlit as st

from gpuexplore.analysis.occupancy import TargetGpu, kernel_occupancy, occupancy, waves
from gpuexplore.core import (
    GpuExploreError,
    InvalidInput,
    Unsupported,
    format_bytes,
    format_bytes_per_s,
    format_flop_per_s,
    format_percent,
)
from gpuexplore.features.machine_code.analysis import (
    InstructionBound,
    flop_per_byte,
    format_rate,
    instruction_bound,
)
from gpuexplore.features.machine_code.compiling import Target
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
from gpuexplore.features.machine_code.ui.facts import (
    compile_choice,
    compiled,
    compiled_here,
    show_on_its_way,
    spills_words,
)
from gpuexplore.hardware import accelerator_named
from gpuexplore.jobs.reading import read_apart
from gpuexplore.kernels.exhibits import Exhibit, exhibits_of
from gpuexplore.kernels.files import MOST_BYTES, SUFFIXES, KernelFile
from gpuexplore.kernels.files.machine_code import CompiledKernel, MachineCode, lines_of_ours
from gpuexplore.kernels.geometry import Block, Launch, read_block
from gpuexplore.kernels.sass import (
    LEGEND,
    UNKNOWN_LIVE,
    Line,
    LoopFacts,
    as_text,
    facts_of,
    main_loop,
    mix_of,
    most_live,
)
from gpuexplore.operations import Implementation, Operation
from gpuexplore.operations.sources import code_of, imports
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.shared import Shared, moment
from gpuexplore.ui.shared.later import Later
from gpuexplore.ui.shared.tables import show_table
from gpuexplore.ui.turns import run_queued
from gpuexplore.ui.url_widgets import show_problem

CODE_HEIGHT = 520  # pixels


def _bound_figures(facts: LoopFacts, bound: InstructionBound, *, of_what: str) -> Figures:
    """Return the rate that machine code allows at most, and what its main loop consists of.

    Args:
        of_what: what the bound is about, and what it leaves out.
    """
    at_most = format_rate(bound) if bound.flop_per_s else format_bytes_per_s(bound.bytes_per_s)
    share = format_percent(bound.share_of_peak) if bound.share_of_peak else "–"
    on_tensor_cores = {
        "Tensor cores": (_of_loop(facts.tensor, facts), "HMMA, QGMMA and similar instructions in one pass")
    }
    return {
        "Upper bound": (at_most, of_what),
        "Of its units' peak": (share, f"The bound over the peak of {bound.units or 'what computes'}, as MFU is"),
        "Main loop": (str(facts.instructions) if facts.is_loop else "none", "Instructions of one pass"),
        **(on_tensor_cores if facts.tensor else {}),
        "Multiply-adds": (
            _of_loop(facts.multiply_adds, facts),
            "FFMA and similar instructions on the ordinary units in one pass, and their share of all instructions",
        ),
    }


def _of_loop(count: int, facts: LoopFacts) -> str:
    return f"{count} ({format_percent(count / facts.instructions)})" if count else "none"


def _show_evidence(bound: InstructionBound) -> None:
    """Say what limits the rate first, and why none follows from the arithmetic where none does."""
    if bound.evidence:
        st.markdown(f"**First bottleneck:** {bound.evidence}.")
    if bound.no_rate and bound.flop_per_s is None:
        st.markdown(f"No bound of its arithmetic follows: {bound.no_rate}.")


def _show_lines(lines: tuple[Line, ...], made_by: str, *, key: str, file_name: str) -> None:
    """Show the main loop or all of the instructions, and offer all as a file.

    Args:
        made_by: what they are compiled for, and by what.
        key: of the widgets.
        file_name: of the download.
    """
    code = tuple(line.instruction for line in lines)
    loop = main_loop(code)
    whole = st.toggle(f"Show all {len(code):,} instructions", key=key) if loop else True
    inside = None if whole or loop is None else {each.address for each in loop}
    shown = [line for line in lines if inside is None or line.instruction.address in inside]
    moved = mix_of(line.instruction for line in shown)
    st.code(as_text(shown), language="asm", height=CODE_HEIGHT)
    counts = [f"{count} {name}" for name, count in (*moved.loads.items(), *moved.stores.items())]
    loads = f" Loads and stores by bits per thread: {', '.join(counts)}." if counts else ""
    unknown = f" Live registers: {UNKNOWN_LIVE}." if all(line.live is None for line in lines) else ""
    st.caption(f"{'The whole kernel' if whole else 'The main loop'} for {made_by}.{loads} {LEGEND}.{unknown}")
    st.download_button(
        "SASS",
        as_text(lines),
        file_name=file_name,
        icon=":material/download:",
        on_click="ignore",
        key=f"{key}.download",
    )


# A kernel's code on a page: its source as it runs, and the PTX the compiler makes of it, on demand.


def show_source(operation: Operation, implementation: Implementation) -> None:
    """Show the kernel's code as it is run: its file's, and what it takes from files of other kernels."""
    for path, text in _sources(operation, implementation).items():
        st.code(text, language="python", line_numbers=True, height=CODE_HEIGHT if len(text) > 800 else "content")
        st.caption(f"From `gpuexplore/operations/{path}`, as it is run.")


def _sources(operation: Operation, implementation: Implementation) -> dict[str, str]:
    """Return the code of an implementation, and of the kernels it imports, by the path of its file; not imported."""
    module = implementation.module_in(operation.name)
    names = {module: {implementation.export}}
    found: dict[str, str] = {}
    ahead = [module]
    while ahead:
        module = ahead.pop(0)
        path = module.removeprefix("gpuexplore.operations.").replace(".", "/") + ".py"
        found[path] = code_of(
            (files("gpuexplore.operations") / path).read_text(encoding="utf-8"), frozenset(names[module])
        )
        for other, name, _ in imports(found[path]):
            if re.match(r"gpuexplore\.operations\.\w+\.numba_", other) and name not in names.setdefault(other, set()):
                names[other].add(name)
                ahead.append(other)
    return found


def show_ptx(choice: KernelChoice, gpu: TargetGpu) -> None:
    """Show the PTX for the target, once it is asked for: it is long."""
    if not st.toggle(f"Show the PTX for compute capability {gpu.compute_capability}", key="kernels.ptx"):
        return
    made = compiled_here(choice, gpu, "Compiling: the PTX follows")
    if made is None:
        return
    st.code(made.ptx, language="asm", line_numbers=True, height=CODE_HEIGHT)
    st.download_button(
        "PTX",
        made.ptx,
        file_name=f"{choice.operation.name}-{choice.implementation.name}-{choice.dtype}.ptx",
        icon=":material/download:",
        on_click="ignore",
    )


def show_exhibits(choice: KernelChoice, launch: Launch, gpu: TargetGpu) -> None:
    """Show the notebooks' kernels of the operation that is chosen, each next to gpuexplore's kernel."""
    for exhibit in exhibits_of(choice.operation.name):
        st.header(f"As in the notebook ({exhibit.row})", anchor=f"notebook-{exhibit.row.lower()}")
        st.warning(f"Wrong, so it is shown and never run: {exhibit.wrong}", icon=":material/report:")
        left, right = st.columns([3, 2], gap="medium")
        left.code(_source(exhibit), language="python", line_numbers=True)
        with right:
            st.code(exhibit.launch_code, language="python")
            st.caption("The essential statements are the notebook's; index, bounds and launch follow its text.")
        _compare_exhibit(exhibit, choice, launch, gpu)
        _show_exhibit_ptx(exhibit, gpu)


def _source(exhibit: Exhibit) -> str:
    """Return the text of an exhibit's kernel; read, not imported."""
    text = (files("gpuexplore.kernels.exhibits") / f"{exhibit.module}.py").read_text(encoding="utf-8")
    body = text[text.index("    def ") : text.index("\n\n    return ")]
    return "@cuda.jit\n" + dedent(body).replace("  # fmt: skip", "")


def _compare_exhibit(exhibit: Exhibit, choice: KernelChoice, launch: Launch, gpu: TargetGpu) -> None:
    theirs = _compiled_exhibit(exhibit, gpu)
    ours = compile_choice(choice, gpu)
    if theirs is None or ours is None:
        show_on_its_way(f"Compiling for compute capability {gpu.compute_capability}: registers and occupancy follow")
    if isinstance(theirs, str):
        st.info(f"{plain(theirs)}.", icon=":material/block:")
    name = f"{choice.implementation.name} in {choice.dtype}"
    rows = [
        _row("The notebook's", theirs, exhibit.launch, gpu),
        _row(name, ours, launch, gpu),
    ]
    alt = f"Table of the notebook's kernel and {choice.implementation.name}: registers, occupancy, blocks and waves"
    show_table(lambda: rows, (exhibit, name, launch, gpu, theirs, ours), {"Occupancy": "%"}, alt=alt)
    st.caption(
        f"The notebook's in fp32 on {exhibit.elements:,} elements; ours as chosen above. Not measured, not ranked."
    )


def _compiled_exhibit(exhibit: Exhibit, gpu: TargetGpu) -> CompiledKernel | str | None:
    found = compiled([Target(exhibit.operation, exhibit.name, "fp32", gpu.compute_capability)])
    return found[0] if found else None


def _row(name: str, made: CompiledKernel | str | None, launch: Launch, gpu: TargetGpu) -> dict[str, object]:
    known: dict[str, object] = {
        "Kernel": name,
        "Registers": None,
        "float64 instructions": None,
        "Occupancy": None,
        "Blocks": launch.blocks,
        "Waves": None,
    }
    if not isinstance(made, CompiledKernel):
        return known
    known |= {"Registers": made.registers_per_thread, "float64 instructions": _float64_instructions(made)}
    try:
        full = kernel_occupancy(made, launch, gpu)
    except InvalidInput:
        return known
    blocks = full.blocks_per_multiprocessor
    passing = waves(launch.blocks, blocks, gpu.multiprocessors) if blocks and gpu.multiprocessors else None
    return known | {"Occupancy": full.occupancy, "Waves": passing.count if passing else None}


def _float64_instructions(made: CompiledKernel) -> int:
    """Return how many instructions of a kernel's PTX compute, convert or move in float64."""
    lines = (line.strip() for line in made.ptx.splitlines())
    return sum(".f64" in line.split(" ")[0].split("\t")[0] for line in lines if not line.startswith((".", "//")))


def _show_exhibit_ptx(exhibit: Exhibit, gpu: TargetGpu) -> None:
    label = f"Show the PTX of the notebook's kernel for compute capability {gpu.compute_capability}"
    if not st.toggle(label, key=f"kernels.ptx.{exhibit.name}"):
        return
    made = _compiled_exhibit(exhibit, gpu)
    if isinstance(made, CompiledKernel):
        st.code(made.ptx, language="asm", line_numbers=True, height=CODE_HEIGHT)


CODES: Shared[MachineCode] = Shared(50)
FILES: Shared[KernelFile] = Shared(20)

DISASSEMBLED: Shared[tuple[Line, ...]] = Shared(100)
DISASSEMBLING: Later[tuple[Line, ...]] = Later()
OURS = "This kernel"
FILE = "A file: PTX or a cubin"


def show_machine_code(choice: KernelChoice, gpu: TargetGpu) -> None:
    """Show the main loop in machine code and the rate it allows; or why it cannot be shown."""
    st.subheader("Machine code", anchor="sass")
    st.caption(
        f"The machine code (SASS) that the multiprocessors of {gpu.name} execute, and the highest rate it allows: "
        "no GPU is needed."
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
        known = DISASSEMBLED.known(made.cubin)
        lines = known or DISASSEMBLING.get(
            made.cubin, lambda: DISASSEMBLED.get(made.cubin, lambda: lines_of_ours(made.cubin))
        )
    except Unsupported as error:
        st.warning(plain(str(error)), icon=":material/block:")
        return
    if lines is None:
        show_on_its_way("Disassembling: the machine code follows")
        return
    facts = facts_of([line.instruction for line in lines])
    bound = _bound(facts, made, choice, gpu)
    roofline = format_flop_per_s(bound.roofline_flop_per_s) if bound.roofline_flop_per_s else "–"
    of_what = "Upper bound at the rated clock, unless the arrays stay in the caches; not measured"
    at_most, *others = _bound_figures(facts, bound, of_what=of_what).items()
    about = "Limit for any kernel at this shape, by the peak of its units and the memory bandwidth"
    show_figures(dict([at_most, ("Roofline", (roofline, about)), *others]))
    _show_evidence(bound)
    name = f"{choice.operation.name}-{choice.implementation.name}-{choice.dtype}-{made.target}.sass"
    _show_lines(lines, f"{made.target}, CUDA {made.toolkit}", key="kernels.sass", file_name=name)


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
    dropped = st.file_uploader(
        "PTX or a cubin",
        type=[suffix.removeprefix(".") for suffix in SUFFIXES],
        key="kernels.file",
        help=f"At most {format_bytes(MOST_BYTES)}. PTX is what `nvcc -ptx`, NVRTC, Triton and numba-cuda write; a "
        "cubin is machine code for one compute capability. The file is not stored.",
    )
    if dropped is None:
        st.info("Drop a file to see its machine code: no GPU is needed.", icon=":material/upload_file:")
        return
    try:
        content = dropped.getvalue().removeprefix(b"\xef\xbb\xbf")
        digest = sha256(content).hexdigest()
        with st.spinner(f"Reading {plain(dropped.name)} …"):
            file: KernelFile = FILES.get(
                digest, lambda: read_apart("gpuexplore.kernels.files:read_kernel_file", content)
            )
        name, block, dynamic_shared_bytes = _choose(file, gpu)
        of = (digest, name, gpu.compute_capability)
        code: MachineCode = run_queued(
            ("file", *of, moment(100)),
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
        help="Threads along x, y and z, like `16,16`. Empty: as the file states, else 256.",
        placeholder="the file's",
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
        st.warning(
            "The file declares dynamic shared memory, whose size is given at launch. Enter its bytes above: until "
            "then occupancy ignores it.",
            icon=":material/memory:",
        )
    if code.reallocated:
        st.markdown(f"{registers_in_words(code)}: occupancy is that of the registers at launch.")
    no_memory = "Memory is not part of it: the bytes they move are unknown"
    of_what = f"Upper bound of these instructions at the rated clock. {no_memory}"
    show_figures(_bound_figures(found.facts, found.bound, of_what=of_what))
    _show_evidence(found.bound)
    made_by = (
        f"{code.target}, assembled by CUDA {code.toolkit}" if code.toolkit else f"{code.target}, as the cubin has it"
    )
    _show_lines(code.lines, made_by, key="kernels.file_sass", file_name=f"{code.kernel[:60]}-{code.target}.sass")


def _figures(code: MachineCode, found: FileKernel) -> Figures:
    full = found.occupancy
    registers = "–" if code.registers_per_thread is None else str(code.registers_per_thread)
    live = most_live(code.lines)
    return {
        "Occupancy": (
            format_percent(full.occupancy) if full else "–",
            "Active warps per multiprocessor, relative to its maximum",
        ),
        "Registers": (registers, "32-bit registers per thread"),
        "Live registers": (
            "–" if live is None else str(live),
            "Largest number of registers of a thread that are in use at once",
        ),
        "Shared memory": (format_bytes(code.shared_bytes + found.dynamic_shared_bytes), "Per block"),
        "Spills": (
            spills_words(code.spill_bytes),
            "Registers the compiler spilled to memory; a cubin does not state them",
        ),
    }


def _limit(found: FileKernel) -> str:
    full = found.occupancy
    if full is None:
        return "Occupancy is unknown: the file does not state the registers per thread."
    if full.limiter is None:
        return f"No block fits on a multiprocessor: {full.reason}."
    return f"{full.active_warps} of {full.max_warps} warps per multiprocessor: {full.limited_by}."
