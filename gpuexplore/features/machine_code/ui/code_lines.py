"""Code on a page: the machine code of any kernel with its rate, our source and PTX, and the notebooks' kernels."""

import re
from importlib.resources import files
from textwrap import dedent

import streamlit as st

from gpuexplore.analysis.occupancy import TargetGpu, kernel_occupancy, waves
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.units import format_bytes_per_s, format_percent
from gpuexplore.features.machine_code.analysis import InstructionBound, format_rate
from gpuexplore.features.machine_code.compiling import Target
from gpuexplore.features.machine_code.ui import Figures, KernelChoice
from gpuexplore.features.machine_code.ui.facts import compile_choice, compiled, compiled_here, show_on_its_way
from gpuexplore.kernels.exhibits import Exhibit, exhibits_of
from gpuexplore.kernels.files.machine_code import CompiledKernel
from gpuexplore.kernels.geometry import Launch
from gpuexplore.kernels.sass import LEGEND, UNKNOWN_LIVE, Line, LoopFacts, as_text, main_loop, mix_of
from gpuexplore.operations.contract import Operation
from gpuexplore.operations.implementation import Implementation
from gpuexplore.operations.sources import code_of, imports
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.shared.tables import show_table

PACKAGE = "gpuexplore.operations."
CODE_HEIGHT = 520  # pixels


def bound_figures(facts: LoopFacts, bound: InstructionBound, *, of_what: str) -> Figures:
    """Return the rate that machine code allows at most, and what its main loop consists of.

    Args:
        of_what: what the bound is about, and what it leaves out.
    """
    at_most = format_rate(bound) if bound.flop_per_s else format_bytes_per_s(bound.bytes_per_s)
    share = format_percent(bound.share_of_peak) if bound.share_of_peak else "–"
    on_tensor_cores = {"Tensor cores": (_of_loop(facts.tensor, facts), "HMMA, QGMMA and their like in one pass")}
    return {
        "Upper bound": (at_most, of_what),
        "Of its units' peak": (share, f"The bound over the peak of {bound.units or 'what computes'}, as MFU is"),
        "Main loop": (str(facts.instructions) if facts.is_loop else "none", "Instructions of one pass"),
        **(on_tensor_cores if facts.tensor else {}),
        "Multiply-adds": (
            _of_loop(facts.multiply_adds, facts),
            "FFMA and their like on the ordinary units in one pass, and their share of its instructions",
        ),
    }


def _of_loop(count: int, facts: LoopFacts) -> str:
    return f"{count} ({format_percent(count / facts.instructions)})" if count else "none"


def show_evidence(bound: InstructionBound) -> None:
    """Say what limits the rate first, and why none follows from the arithmetic where none does."""
    if bound.evidence:
        st.markdown(f"**First bottleneck:** {bound.evidence}.")
    if bound.no_rate and bound.flop_per_s is None:
        st.markdown(f"No bound of its arithmetic follows: {bound.no_rate}.")


def show_lines(lines: tuple[Line, ...], made_by: str, *, key: str, file_name: str) -> None:
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
    told = [f"{count} {name}" for name, count in (*moved.loads.items(), *moved.stores.items())]
    loads = f" Loads and stores by bits per thread: {', '.join(told)}." if told else ""
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
    for path, text in sources(operation, implementation).items():
        st.code(text, language="python", line_numbers=True, height=CODE_HEIGHT if len(text) > 800 else "content")
        st.caption(f"From `gpuexplore/operations/{path}`, as it is run.")


def sources(operation: Operation, implementation: Implementation) -> dict[str, str]:
    """Return the code of an implementation, and of the kernels it imports, by the path of its file; not imported."""
    module = implementation.module_in(operation.name)
    names = {module: {implementation.export}}
    found: dict[str, str] = {}
    ahead = [module]
    while ahead:
        module = ahead.pop(0)
        path = f"{module.removeprefix(PACKAGE).replace('.', '/')}.py"
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
    """Show the notebooks' kernels of the operation that is chosen, each beside the kernel of ours."""
    for exhibit in exhibits_of(choice.operation.name):
        st.header(f"As in the notebook ({exhibit.row})", anchor=f"notebook-{exhibit.row.lower()}")
        st.warning(f"Wrong, so it is shown and never run: {exhibit.wrong}", icon=":material/report:")
        left, right = st.columns([3, 2], gap="medium")
        with left:
            st.code(source(exhibit), language="python", line_numbers=True)
        with right:
            st.code(exhibit.launch_code, language="python")
            st.caption("The statements that matter are the notebook's; index, bounds and launch follow its text.")
        _compare_exhibit(exhibit, choice, launch, gpu)
        _show_exhibit_ptx(exhibit, gpu)


def source(exhibit: Exhibit) -> str:
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
    known |= {"Registers": made.registers_per_thread, "float64 instructions": float64_instructions(made)}
    try:
        full = kernel_occupancy(made, launch, gpu)
    except InvalidInput:
        return known
    blocks = full.blocks_per_multiprocessor
    passing = waves(launch.blocks, blocks, gpu.multiprocessors) if blocks and gpu.multiprocessors else None
    return known | {"Occupancy": full.occupancy, "Waves": passing.count if passing else None}


def float64_instructions(made: CompiledKernel) -> int:
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
