"""Writes the table of docs/gpu.md: by compute capability, which GPUs recordings that ship come from.

Usage: python -m scripts.verified_gpus. A test fails when the table is not what this would write.
"""

from pathlib import Path

from gpuexplore.core.model import Device
from gpuexplore.operations.kernel_targets import COMPUTE_CAPABILITIES
from gpuexplore.recorded import recorded_results

FILE = Path(__file__).parents[1] / "docs" / "gpu.md"


def main() -> None:
    """Write the table into the page."""
    FILE.write_text(page(FILE.read_text(encoding="utf-8")), encoding="utf-8")


def page(text: str) -> str:
    """Return the page `text` with its table as it has to be."""
    return with_table(text, "verified", table())


def with_table(text: str, name: str, lines: str) -> str:
    """Return the page `text` with `lines` as its generated table `name`."""
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
    before, rest = text.split(begin)
    _, after = rest.split(end)
    return f"{before}{begin}\n{lines}\n{end}{after}"


def table() -> str:
    """Return a row for each GPU that was recorded, and one for the compute capabilities of no recording."""
    found: dict[str, dict[str, tuple[list[str], Device]]] = {}
    for recording, result in recorded_results():
        device = result.environment.device if result.environment else None
        if device and device.kind == "cuda" and device.compute_capability:
            names, _ = found.setdefault(device.compute_capability, {}).setdefault(device.name, ([], device))
            names += [recording.name] * (recording.name not in names)
    rows = [row for each in sorted(found, key=_numbers) for row in _rows(each, found[each])]
    if others := sorted(set(COMPUTE_CAPABILITIES) - set(found), key=_numbers):
        rows.append(f"| {', '.join(others)} | none yet | | |")
    return "\n".join(["| compute capability | GPU | driver | recording |", "| --- | --- | --- | --- |", *rows]) + "\n"


def _numbers(capability: str) -> tuple[int, ...]:
    return tuple(map(int, capability.split(".")))


def _rows(capability: str, recorded: dict[str, tuple[list[str], Device]]) -> list[str]:
    return [
        f"| {capability} | {name} | {device.driver or 'unknown'} | {', '.join(names)} |"
        for name, (names, device) in sorted(recorded.items())
    ]


if __name__ == "__main__":
    main()
