"""The notebooks' kernels on the page, beside ours: what is wrong, the code, and what the compiler makes of it."""

from importlib.resources import files
from textwrap import dedent

import streamlit as st

from gpuexplore.analysis.occupancy import TargetGpu, kernel_occupancy, waves
from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.machine_code.compiling import Target
from gpuexplore.features.machine_code.ui import KernelChoice
from gpuexplore.features.machine_code.ui.code_lines import CODE_HEIGHT
from gpuexplore.features.machine_code.ui.facts import compile_choice, compiled, show_on_its_way
from gpuexplore.kernels.exhibits import Exhibit, exhibits_of
from gpuexplore.kernels.files.machine_code import CompiledKernel
from gpuexplore.kernels.geometry import Launch
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.shared.tables import show_table

FLOAT64 = ".f64"  # in the name of a PTX instruction
DTYPE = "fp32"  # of the notebooks' arrays


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
        _compare(exhibit, choice, launch, gpu)
        _show_ptx(exhibit, gpu)


def source(exhibit: Exhibit) -> str:
    """Return the text of an exhibit's kernel; read, not imported."""
    text = (files("gpuexplore.kernels.exhibits") / f"{exhibit.module}.py").read_text(encoding="utf-8")
    body = text[text.index("    def ") : text.index("\n\n    return ")]
    return "@cuda.jit\n" + dedent(body).replace("  # fmt: skip", "")


def _compare(exhibit: Exhibit, choice: KernelChoice, launch: Launch, gpu: TargetGpu) -> None:
    theirs, ours = _compiled(exhibit, gpu), compile_choice(choice, gpu)
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


def _compiled(exhibit: Exhibit, gpu: TargetGpu) -> CompiledKernel | str | None:
    found = compiled([_target(exhibit, gpu)])
    return found[0] if found else None


def _target(exhibit: Exhibit, gpu: TargetGpu) -> Target:
    return Target(exhibit.operation, exhibit.name, DTYPE, gpu.compute_capability)


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
    return sum(FLOAT64 in line.split(" ")[0].split("\t")[0] for line in lines if not line.startswith((".", "//")))


def _show_ptx(exhibit: Exhibit, gpu: TargetGpu) -> None:
    label = f"Show the PTX of the notebook's kernel for compute capability {gpu.compute_capability}"
    if not st.toggle(label, key=f"kernels.ptx.{exhibit.name}"):
        return
    made = _compiled(exhibit, gpu)
    if isinstance(made, CompiledKernel):
        st.code(made.ptx, language="asm", line_numbers=True, height=CODE_HEIGHT)
