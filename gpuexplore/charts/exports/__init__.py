"""Results as files: tables, text for a paper or a chat, a page to send, and what other harnesses read."""

from gpuexplore.charts.exports.export import EXPORTS, ExportFormat, export, format_of
from gpuexplore.charts.exports.exported import Exported

__all__ = ["EXPORTS", "ExportFormat", "Exported", "export", "format_of"]
