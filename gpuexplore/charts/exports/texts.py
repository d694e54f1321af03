"""Results as Markdown and as LaTeX: the headline, where and when it was measured, and a table of every case."""

from collections.abc import Iterable, Mapping

from gpuexplore.analysis.compare import markdown_row, markdown_text
from gpuexplore.analysis.model import AnalyzedResult, RunAnalysis
from gpuexplore.analysis.utilization.utilization import shape_label
from gpuexplore.charts.exports.exported import Exported
from gpuexplore.core.units import (
    UNKNOWN,
    format_interval,
    format_percent,
    format_ratio,
    format_seconds,
    format_work_rate,
    in_one_unit,
)
from gpuexplore.request import as_command, from_experiment

HEADING = ("size", "dtype", "implementation", "device", "time", "95 % interval", "speedup", "rate", "MFU", "status")
_LATEX: Mapping[str, str] = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "×": r"$\times$",
    "µ": r"\textmu{}",
    "—": "---",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}


def markdown(exported: Exported) -> bytes:
    """Return the results as Markdown; names are shown as they are."""
    lines = [f"## {markdown_text(exported.title)}", "", f"**{markdown_text(exported.analysis.summary.headline)}**", ""]
    lines += [f"{' · '.join(map(markdown_text, exported.facts))}", ""] if exported.facts else []
    lines += [markdown_row(HEADING), markdown_row(["---"] * len(HEADING))]
    lines += [markdown_row([markdown_text(cell) for cell in row]) for row in table_rows(exported.analysis)]
    if exported.analysis.summary.details:
        lines += ["", *(f"- {markdown_text(sentence)}" for sentence in exported.analysis.summary.details)]
    lines += ["", "```sh", as_command(from_experiment(exported.experiment)), "```"]
    return bytes("\n".join(lines) + "\n", "utf8")


def latex(exported: Exported) -> bytes:
    """Return the results as a table in LaTeX, for which a document loads booktabs and textcomp."""
    rows = [_latex_row(HEADING), r"\midrule", *map(_latex_row, table_rows(exported.analysis))]
    caption = ". ".join((exported.title, exported.analysis.summary.headline.rstrip("."), *exported.facts)) + "."
    lines = [
        f"% {' '.join(as_command(from_experiment(exported.experiment)).split())}",
        r"\begin{table}",
        f"\\caption{{{_latex(caption)}}}",
        f"\\begin{{tabular}}{{{'l' * len(HEADING)}}}",
        r"\toprule",
        *rows,
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return bytes("\n".join(lines) + "\n", "utf8")


def table_rows(analysis: RunAnalysis) -> list[tuple[str, ...]]:
    """Return every case as words, in the order of HEADING, each column in one unit."""
    return in_one_unit([_table_row(analyzed) for analyzed in analysis.results])


def _table_row(analyzed: AnalyzedResult) -> tuple[str, ...]:
    result = analyzed.result
    return (
        shape_label(analyzed.case.shape),
        analyzed.case.dtype,
        analyzed.case.implementation,
        analyzed.case.device,
        format_seconds(analyzed.median_s),
        format_interval(analyzed.ci95_s, format_seconds) if analyzed.ci95_s else UNKNOWN,
        format_ratio(analyzed.speedup.ratio) if analyzed.speedup else UNKNOWN,
        format_work_rate(analyzed.flop_per_s, analyzed.bytes_per_s),
        format_percent(analyzed.mfu),
        " ".join((result.status.value, *analyzed.marks))
        if result.measurement
        else f"{result.status.value}: {result.reason}",
    )


def _latex_row(cells: Iterable[str]) -> str:
    return " & ".join(map(_latex, cells)) + r" \\"


def _latex(text: str) -> str:
    return "".join(_LATEX.get(sign, sign) for sign in " ".join(text.split()))
