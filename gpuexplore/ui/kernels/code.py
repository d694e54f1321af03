"""A kernel's code on a page: its source as it runs, and the PTX the compiler makes of it, on demand."""

import ast
from importlib.resources import files

import streamlit as st

from gpuexplore.analysis.kernels.target_gpu import TargetGpu
from gpuexplore.operations.contract import Operation
from gpuexplore.operations.implementation import Implementation
from gpuexplore.ui.kernels.choice import KernelChoice
from gpuexplore.ui.kernels.facts import compile_choice, show_on_its_way
from gpuexplore.ui.markdown import plain

PACKAGE = "gpuexplore.operations."
CODE_HEIGHT = 520  # pixels
SHORT = 800  # characters that need no scrolling


def show_source(operation: Operation, implementation: Implementation) -> None:
    """Show the file the kernel is in, as it is run, and the files of other kernels it takes over."""
    for path, text in sources(operation, implementation).items():
        st.code(text, language="python", line_numbers=True, height=CODE_HEIGHT if len(text) > SHORT else "content")
        st.caption(f"`gpuexplore/operations/{path}`, as it is run.")


def sources(operation: Operation, implementation: Implementation) -> dict[str, str]:
    """Return the texts of an implementation's file and of the kernels it imports, by path; read, not imported."""
    found: dict[str, str] = {}
    left = [f"{operation.name}/{implementation.module}.py"]
    while left:
        path = left.pop(0)
        if path not in found:
            found[path] = (files("gpuexplore.operations") / path).read_text(encoding="utf-8")
            left += _kernels_imported(found[path])
    return found


def _kernels_imported(text: str) -> list[str]:
    """Return the paths of the kernel files that a file imports from."""
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom) and node.module]
    named = [(node.module or "", name.name) for node in imports for name in node.names]
    modules = dict.fromkeys(part for module, name in named for part in (module, f"{module}.{name}"))
    inside = [module.removeprefix(PACKAGE).split(".") for module in modules if module.startswith(PACKAGE)]
    return [f"{parts[0]}/{parts[1]}.py" for parts in inside if len(parts) == 2 and parts[1].startswith("numba_")]


def show_ptx(choice: KernelChoice, gpu: TargetGpu) -> None:
    """Show the PTX for the target, once it is asked for: it is long."""
    if not st.toggle(f"Show the PTX for compute capability {gpu.compute_capability}", key="kernels.ptx"):
        return
    compiled = compile_choice(choice, gpu)
    if compiled is None:
        show_on_its_way("Compiling: the PTX follows")
        return
    if isinstance(compiled, str):
        st.warning(plain(compiled), icon=":material/block:")
        return
    st.code(compiled.ptx, language="asm", line_numbers=True, height=CODE_HEIGHT)
    st.download_button(
        "PTX",
        compiled.ptx,
        file_name=f"{choice.operation.name}-{choice.implementation.name}-{choice.dtype}.ptx",
        icon=":material/download:",
        on_click="ignore",
    )
