"""Writes docs/support.md: every operation, and which implementation and dtype go together on which kind of device.

Usage: python -m scripts.support_matrix. A test fails when the page is not what this would write.
"""

from collections.abc import Iterable
from pathlib import Path

from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.model import Device
from gpuexplore.hardware import accelerator_named, native_dtypes
from gpuexplore.measure.candidates.candidate import support_matrix
from gpuexplore.operations import OPERATIONS
from gpuexplore.operations.contract import Operation
from gpuexplore.operations.implementation import Implementation

FILE = Path(__file__).parents[1] / "docs" / "support.md"
STAND_IN = "h100-sxm5-80gb"
HEADING = """# What goes together

Written by `make docs`; `gpuexplore list --json` prints the same for a machine, with optional implementations too.
A dtype that a device has no units for may run: its results are flagged `emulated`.
"""


def main() -> None:
    """Write the page."""
    FILE.write_text(page(), encoding="utf-8")


def page() -> str:
    """Return the whole page."""
    lines = [HEADING, "## Operations", "", *operations()]
    for title, device in devices().items():
        lines += [f"## {title}", "", *section(device)]
    return "\n".join(lines).rstrip() + "\n"


def operations() -> list[str]:
    """Return the table of every operation with every way to compute it."""
    lines = [
        "| operation | what it is | measured by default | only when asked for |",
        "| --- |" + " --- |" * 3,
    ]
    for operation in OPERATIONS.values():
        usual, all_names = (_names(listed) for listed in (operation.usual, operation.implementations))
        asked = [name for name in all_names if name not in usual]
        lines.append(
            f"| `{operation.name}` | {operation.title}: {operation.formula} | {_code(usual)} | {_code(asked)} |"
        )
    return [*lines, ""]


def _names(implementations: Iterable[Implementation]) -> list[str]:
    return [implementation.name for implementation in implementations]


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def devices() -> dict[str, Device]:
    """Return one stand-in of each kind, by its heading."""
    row = accelerator_named(STAND_IN)
    if row is None:
        raise SystemExit(f"accelerators.csv has no row {STAND_IN}")
    cuda = Device(
        "cuda:0",
        "cuda",
        row.name,
        compute_capability=row.compute_capability,
        native=native_dtypes(row),
        spec_key=row.key,
    )
    return {
        "On a CPU": Device("cpu", "cpu", "a CPU"),
        f"On a CUDA device of compute capability {row.compute_capability} ({row.name})": cuda,
    }


def section(device: Device) -> list[str]:
    """Return the table of every operation on `device`, and below it the numbered reasons."""
    reasons: list[str] = []
    lines = ["| operation | implementation | " + " | ".join(DTYPES) + " |", "| --- | --- |" + " --- |" * len(DTYPES)]
    for operation in OPERATIONS.values():
        lines += _rows(operation, device, reasons)
    return [*lines, "", *(f"{number}. {reason}" for number, reason in enumerate(reasons, 1)), ""]


def _rows(operation: Operation, device: Device, reasons: list[str]) -> list[str]:
    found = {(cell["implementation"], cell["dtype"]): cell["reason"] for cell in support_matrix(operation, device)}
    names = [implementation.name for implementation in operation.implementations if not implementation.optional]
    cells = {name: [_cell(found[name, dtype], reasons) for dtype in DTYPES] for name in names}
    return [f"| {operation.name} | {name} | " + " | ".join(cells[name]) + " |" for name in names]


def _cell(reason: str | None, reasons: list[str]) -> str:
    if reason is None:
        return "yes"
    if "pip install" in reason:
        raise SystemExit(f"the page needs every library: {reason}")
    if reason not in reasons:
        reasons.append(reason)
    return f"no ({reasons.index(reason) + 1})"


if __name__ == "__main__":
    main()
