"""Writes the tables of docs/gpu.md that say what to expect: peaks of the table of accelerators, and results of others.

Usage: python -m scripts.expected_gpus. A test fails when a table is not what this would write.
"""

from gpuexplore.analysis.utilization.peak_sources import best_results
from gpuexplore.core.units import format_bytes_per_s, format_flop_per_s, format_percent
from gpuexplore.features.machine_code.analysis.ladder import all_published
from gpuexplore.hardware import ACCELERATORS, Accelerator, bandwidth_of, peaks_of
from scripts.verified_gpus import FILE, with_table

LEAST_CAPABILITY = (7, 5)  # what kernels are compiled for
PEAKS = (("fp32", "vector"), ("bf16", "matrix"))
UNKNOWN = ""


def main() -> None:
    """Write the tables into the page."""
    FILE.write_text(page(FILE.read_text(encoding="utf-8")), encoding="utf-8")


def page(text: str) -> str:
    """Return the page `text` with its tables as they have to be."""
    return with_table(with_table(text, "expected", expected()), "published", published())


def expected() -> str:
    """Return a row for each GPU that kernels are compiled for and of which others published a product."""
    heading = "| GPU | bandwidth | fp32 | bf16 tensor cores | product that others published |"
    rows = [_row(gpu) for gpu in ACCELERATORS if _is_compiled_for(gpu) and best_results(gpu.key)]
    return "\n".join([heading, "| --- |" + " --- |" * 4, *rows]) + "\n"


def published() -> str:
    """Return a row for each source of shares of the vendor's library, with its kernels."""
    shares: dict[str, list[str]] = {}
    for row in all_published():
        source = _linked(row["source"], row["conditions"])
        share = format_percent(float(row["share"]))
        shares.setdefault(source, []).append(f"`{row['implementation']}` {share}")
    lines = [f"| {source} | {', '.join(found)} |" for source, found in shares.items()]
    return "\n".join(["| source | kernels like, and their share |", "| --- | --- |", *lines]) + "\n"


def _linked(source: str, words: str) -> str:
    """Return `words` as a link, or with their source behind them where that is a document."""
    return f"[{words}]({source})" if source.startswith("https://") else f"{words} ({source})"


def _is_compiled_for(accelerator: Accelerator) -> bool:
    if accelerator.vendor != "NVIDIA":  # theirs is a name
        return False
    return tuple(map(int, accelerator.compute_capability.split("."))) >= LEAST_CAPABILITY


def _row(accelerator: Accelerator) -> str:
    peaks = {(peak.dtype, peak.unit): peak for peak in peaks_of(accelerator)}
    bandwidth = bandwidth_of(accelerator)
    cells = [accelerator.name, format_bytes_per_s(bandwidth.bytes_per_s) if bandwidth else UNKNOWN]
    cells += [format_flop_per_s(peaks[key].flop_per_s) if key in peaks else UNKNOWN for key in PEAKS]
    found = [
        _linked(result.source, f"{format_flop_per_s(result.flop_per_s)} in {result.dtype}")
        for result in best_results(accelerator.key)
    ]
    return f"| {' | '.join([*cells, ', '.join(found)])} |"


if __name__ == "__main__":
    main()
