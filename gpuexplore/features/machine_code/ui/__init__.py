"""The choices of the page Kernels: kernel, dtype, GPU, block, shape and grid."""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from gpuexplore.analysis.occupancy import OWN, TargetGpu, of_the_table, own_gpu
from gpuexplore.core import Device, InvalidInput, Shape, read_whole
from gpuexplore.core.dtypes import DTYPES
from gpuexplore.hardware import CAPABILITIES, NEWEST_FIRST
from gpuexplore.kernels.geometry import Block, Launch
from gpuexplore.operations import OPERATIONS, Implementation, Operation
from gpuexplore.shapes import parse_shape
from gpuexplore.ui import url_widgets
from gpuexplore.ui.link import parameters, write
from gpuexplore.ui.markdown import plain

VIEWS = {
    "interpreter": "Interpreter",
    "launch": "Launch and occupancy",
    "ladder": "Ladder",
    "code": "Code",
}
GPUS = {
    accelerator.key: of_the_table(accelerator)
    for accelerator in NEWEST_FIRST
    if accelerator.compute_capability in CAPABILITIES
}


@dataclass(frozen=True, slots=True)
class KernelChoice:
    """The choices of a visitor.

    Attributes:
        operation: its contract.
        implementation: one of our kernels.
        dtype: its name.
        shape: of the operation.
        gpu: the target, of the table or the visitor's own; None for a CPU kernel.
        launch: how the kernel would be launched; None for a CPU kernel.
    """

    operation: Operation
    implementation: Implementation
    dtype: str
    shape: Shape
    gpu: TargetGpu | None
    launch: Launch | None

    @property
    def block(self) -> Block | None:
        """The block shape, without its lengths of 1 at the end that the kernel does not name."""
        geometry = self.implementation.geometry
        launch = self.launch
        return launch.block[: len(geometry.blocks[0])] if geometry and launch else None


def choose(devices: Sequence[Device]) -> KernelChoice:
    """Draw the choices and return them.

    Raises:
        InvalidInput: a shape or a grid that cannot be used.
    """
    gpu = block = None
    grid = ""
    with url_widgets.choices_in_a_line() as (words, _):
        operation, implementation, dtype = _kernel()
        geometry = implementation.geometry
        left, right = st.columns([2, 1], gap="medium")
        if geometry:
            with left:
                here = [device.spec_key for device in devices if device.spec_key in GPUS]
                targets = sorted((*GPUS, OWN), key=lambda key: (key not in here, key not in ("h100-sxm5-80gb", OWN)))
                key = url_widgets.select("Target GPU", "gpu", targets, shown=_gpu_label)
            with right:
                shown = [",".join(map(str, block)) for block in geometry.blocks]
                block = geometry.blocks[shown.index(url_widgets.select("Block (threads)", "block", shown))]
                grid = url_widgets.text(
                    "Grid (blocks)",
                    "grid",
                    "",
                    help="Blocks along x and y, like `8,8`. Empty: enough to cover the output. A smaller grid is shown "
                    "but never timed.",
                    placeholder="covers the output",
                )
            gpu = GPUS[key] if key in GPUS else _own_gpu()
        with left:
            shape_text = _shape(operation)
        parts = (dtype, shape_text, *([f"block {' × '.join(map(str, block))}"] if block else []))
        words.markdown(f"**{implementation.name}** {plain(' · '.join((*parts, *([gpu.name] if gpu else []))))}")
        words.caption(f"{implementation.about[0].upper()}{implementation.about[1:]}.")
    shape = parse_shape(shape_text, operation)
    launch = geometry.launch(operation.output(shape), block, _grid(grid)) if geometry else None
    return KernelChoice(operation, implementation, dtype, shape, gpu, launch)


def choose_view(choice: KernelChoice) -> str:
    """Draw the tabs, and return a key of VIEWS; of a link without one, that which its run belongs to."""
    given = parameters()
    if "tab" not in given and choice.gpu and ("sweep" in given or "run" in given):
        write("tab", "launch" if "sweep" in given else "ladder")
    shown = list(VIEWS) if choice.gpu else ["ladder", "code"]
    return url_widgets.segments("View", "tab", shown, shown=VIEWS.__getitem__, labelled=False)


def _own_kernels(operation: str) -> list[Implementation]:
    return [each for each in OPERATIONS[operation].implementations if each.hand_written and not each.optional]


def _kernel() -> tuple[Operation, Implementation, str]:
    left, middle, right = st.columns([3, 4, 2], gap="medium")
    with left:
        names = [name for name in OPERATIONS if _own_kernels(name)]
        operation = OPERATIONS[url_widgets.select("Operation", "op", names, shown=url_widgets.operation_title)]
    own = {kernel.name: kernel for kernel in _own_kernels(operation.name)}
    with middle:
        names = sorted(own, key=lambda name: own[name].geometry is None)  # a GPU's kernels first
        implementation = own[url_widgets.select("Kernel", "impl", names)]
    with right:
        known = [name for name in operation.dtypes if not implementation.dtypes or name in implementation.dtypes]
        usable = [name for name in known if not DTYPES[name].matrix_only or name in implementation.on_matrix_units]
        dtype = url_widgets.select("Dtype", "dtype", sorted(usable, key=lambda name: name != "fp32"))
    return operation, implementation, dtype


def _shape(operation: Operation) -> str:
    largest = max(
        operation.presets, key=lambda preset: operation.byte_count(preset.shape, DTYPES["fp32"]), default=None
    )
    return url_widgets.shape(largest.name if largest else str(operation.default_sizes[-1]))


def _own_gpu() -> TargetGpu:
    """Draw the two numbers of a GPU that is in no table, and return it.

    Raises:
        InvalidInput: no GPU has so many multiprocessors.
    """
    left, right = st.columns(2, gap="medium")
    with left:
        capabilities = sorted(CAPABILITIES, key=lambda number: number != "7.5")  # of the notebook's card
        capability = url_widgets.select("Compute capability", "cc", capabilities)
    with right:
        typed = url_widgets.text("Multiprocessors", "sm", "16", help="Multiprocessors of the whole GPU, like 16.")
    return own_gpu(capability, typed)


def _gpu_label(key: str) -> str:
    return "Custom GPU …" if key == OWN else f"{GPUS[key].name} ({GPUS[key].compute_capability})"


def _grid(text: str) -> tuple[int, ...] | None:
    """Return the blocks along x, y and z, or None for a grid that covers the output.

    Raises:
        InvalidInput: it is no list of one to three whole numbers.
    """
    if not text.strip():
        return None
    most = 2**31 - 1  # along x
    blocks = tuple(read_whole(word) or 0 for word in text.split(","))
    if len(blocks) > 3 or not all(0 < count <= most for count in blocks):
        raise InvalidInput.of("grid", text, f"one to three whole numbers from 1 to {most:,}, like 8,8")
    return blocks


Figures = dict[str, tuple[str, str]]  # by name, what it is and what it means


def show_figures(figures: Figures) -> None:
    """Show figures side by side, each with what it means."""
    for column, (name, (value, about)) in zip(st.columns(len(figures)), figures.items(), strict=True):
        column.metric(name, value, help=about)
