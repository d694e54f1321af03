"""Results as files: tables, text for a paper or a chat, a page to send, and what other harnesses read."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from types import MappingProxyType

from gpuexplore.analysis.run.json_report import run_report
from gpuexplore.charts.exports.exported import Exported
from gpuexplore.charts.exports.harnesses import pyperf, pytest_benchmark
from gpuexplore.charts.exports.html_report import html_report
from gpuexplore.charts.exports.texts import latex, markdown
from gpuexplore.charts.frame import to_frame
from gpuexplore.core.errors import InvalidInput

__all__ = ["EXPORTS", "Exported", "export", "format_of"]


@dataclass(frozen=True, slots=True)
class _ExportFormat:
    """A type of file.

    Attributes:
        label: what a button calls it.
        mime: its media type.
        write: makes the content.
    """

    label: str
    mime: str
    write: Callable[[Exported], bytes]


def export(suffix: str, exported: Exported) -> bytes:
    """Return the content of a file of the type `suffix`, a key of EXPORTS."""
    return EXPORTS[suffix].write(exported)


def format_of(path: Path) -> str:
    """Return which of EXPORTS the name of a file asks for: the longest that it ends in.

    Raises:
        InvalidInput: none; names those there are.
    """
    found = [suffix for suffix in EXPORTS if path.name.endswith(suffix)]
    if not found:
        raise InvalidInput.of("file type", path.suffix or path.name, EXPORTS)
    return max(found, key=len)


def _csv(exported: Exported) -> bytes:
    return bytes(to_frame(exported.analysis, exported.run).to_csv(index=False), "utf8")


def _json(exported: Exported) -> bytes:
    report = run_report(exported.experiment, exported.analysis, exported.run)
    return bytes(json.dumps(report, indent=2, allow_nan=False), "utf8")


def _parquet(exported: Exported) -> bytes:
    file = BytesIO()
    to_frame(exported.analysis, exported.run).to_parquet(file, index=False)
    return file.getvalue()


EXPORTS: Mapping[str, _ExportFormat] = MappingProxyType(
    {
        ".html": _ExportFormat("Report", "text/html", html_report),
        ".json": _ExportFormat("JSON", "application/json", _json),
        ".csv": _ExportFormat("CSV", "text/csv", _csv),
        ".parquet": _ExportFormat("Parquet", "application/vnd.apache.parquet", _parquet),
        ".md": _ExportFormat("Markdown", "text/markdown", markdown),
        ".tex": _ExportFormat("LaTeX", "application/x-tex", latex),
        ".pyperf.json": _ExportFormat("pyperf", "application/json", pyperf),
        ".pytest-benchmark.json": _ExportFormat("pytest-benchmark", "application/json", pytest_benchmark),
    }
)
