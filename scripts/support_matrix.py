"""Writes docs/support.md: every operation, and which implementation and dtype go together on which kind of device.

Usage: python -m scripts.support_matrix. A test fails when the page is not what this would write.
"""

import re
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

Which implementations and dtypes of an operation run on a CPU and on a GPU. `gpuexplore list --json` prints the same for
a machine, with libraries that its tables leave out (torch.compile, Triton, CuPy). A dtype that a device has no units
for may run: its results are flagged `emulated`. Written by `make docs`.
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
        "| operation | shapes | measured by default | only when asked for |",
        "| --- |" + " --- |" * 3,
    ]
    for operation in OPERATIONS.values():
        usual, all_names = (_names(listed) for listed in (operation.usual, operation.implementations))
        asked = [name for name in all_names if name not in usual]
        lines.append(f"| `{operation.name}` | {operation.formula} | {_code(usual)} | {_code(asked)} |")
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
    """Return the table of what runs on `device`, equal cells in one row, and below it the numbered reasons."""
    reasons: list[str] = []
    rows: dict[tuple[str, str, str], list[str]] = {}
    for operation in OPERATIONS.values():
        for row in _rows(operation, device, reasons):
            rows.setdefault(row, []).append(operation.name)
    lines = ["| operations | implementations | dtypes | refused, and why |", "| --- |" + " --- |" * 3]
    lines += [f"| {', '.join(named)} | {names} | {had} | {refused} |" for (names, had, refused), named in rows.items()]
    return [*lines, "", *(f"{number}. {reason}" for number, reason in enumerate(reasons, 1)), ""]


def _rows(operation: Operation, device: Device, reasons: list[str]) -> list[tuple[str, str, str]]:
    """Return (implementations, dtypes they have, dtypes they refuse with numbers of `reasons`) of those that run."""
    found = {(cell["implementation"], cell["dtype"]): cell["reason"] for cell in support_matrix(operation, device)}
    alike: dict[tuple[int, ...], list[str]] = {}
    for name in _names(listed for listed in operation.implementations if not listed.optional):
        refusals = [found[name, dtype] for dtype in DTYPES]
        if any("pip install" in (reason or "") for reason in refusals):
            raise SystemExit(f"the page needs every library: {refusals[0]}")
        if all(refusals):
            continue
        numbers = tuple(
            _number(reason, {name: "the implementation", operation.name: "the operation"}, reasons)
            for reason in refusals
        )
        alike.setdefault(numbers, []).append(name)
    return [(", ".join(names), *_dtypes(numbers)) for numbers, names in alike.items()]


def _number(reason: str | None, generic: dict[str, str], reasons: list[str]) -> int:
    """Return the number of `reason` among `reasons`, without the names in `generic`; 0 where nothing is refused."""
    if reason is None:
        return 0
    for name, word in generic.items():
        reason = re.sub(rf"(?<![\w-]){name}(?![\w-])", word, reason)
    if reason not in reasons:
        reasons.append(reason)
    return reasons.index(reason) + 1


def _dtypes(numbers: tuple[int, ...]) -> tuple[str, str]:
    refused = {
        number: [d for d, n in zip(DTYPES, numbers, strict=True) if n == number] for number in dict.fromkeys(numbers)
    }
    had = ", ".join(refused.pop(0))
    return had, "; ".join(f"{', '.join(names)} ({number})" for number, names in refused.items())


if __name__ == "__main__":
    main()
