"""A run as one self-contained HTML file, which prints well, and as what a notebook shows of it.

Results as Markdown and as LaTeX: the headline, where and when it was measured, and a table of every case.
"""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from jinja2 import Environment, Template
from markupsafe import Markup

from gpuexplore import charts
from gpuexplore.analysis.compare import markdown_row, markdown_text
from gpuexplore.analysis.model import AnalyzedResult, RunAnalysis
from gpuexplore.analysis.run.summary import is_memory_bound, quality_of
from gpuexplore.analysis.utilization.utilization import shape_label
from gpuexplore.charts.exports.exported import Exported
from gpuexplore.charts.exports.picture import NotDrawn, pictures, specification
from gpuexplore.charts.points import panels
from gpuexplore.charts.quick_altair import unchecked
from gpuexplore.core.units import (
    UNKNOWN,
    format_interval,
    format_percent,
    format_ratio,
    format_seconds,
    format_work_rate,
    in_one_unit,
)
from gpuexplore.hardware import TORCH_KINDS
from gpuexplore.request import as_command, as_python, from_experiment

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
    lines += [markdown_row([markdown_text(cell) for cell in row]) for row in _table_rows(exported.analysis)]
    if exported.analysis.summary.details:
        lines += ["", *(f"- {markdown_text(sentence)}" for sentence in exported.analysis.summary.details)]
    lines += ["", "```sh", as_command(from_experiment(exported.experiment)), "```"]
    return bytes("\n".join(lines) + "\n", "utf8")


def latex(exported: Exported) -> bytes:
    """Return the results as a table in LaTeX, for which a document loads booktabs and textcomp."""
    rows = [_latex_row(HEADING), r"\midrule", *map(_latex_row, _table_rows(exported.analysis))]
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


def _table_rows(analysis: RunAnalysis) -> list[tuple[str, ...]]:
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


def html_report(exported: Exported) -> bytes:
    """Return the report of a run.

    Raises:
        NotDrawn: its charts could not be drawn.
    """
    request = from_experiment(exported.experiment)
    quality, why = quality_of([each.result for each in exported.analysis.results if each.measurement])
    page = _template(Path(__file__).with_name("report.html.jinja")).render(
        exported=exported,
        summary=exported.analysis.summary,
        style=Markup(Path(__file__).with_name("report.css").read_text(encoding="utf-8")),
        pictures=_pictures(exported),
        heading=HEADING,
        rows=_table_rows(exported.analysis),
        quality=quality,
        why=why,
        conditions=_conditions(exported),
        command=as_command(request),
        python=as_python(request),
    )
    return bytes(page, "utf8")


def html_cell(exported: Exported) -> str:
    """Return a run as a notebook shows it: its sentence, the chart of times and a table of every case."""
    pictures_of_it = list[tuple[str, Markup]]()
    reason = ""
    try:
        pictures_of_it = _pictures(exported, ("Time per call",))
    except NotDrawn as error:
        reason = str(error)
    return _template(Path(__file__).with_name("cell.html.jinja")).render(
        exported=exported,
        pictures=pictures_of_it,
        reason=reason,
        heading=HEADING,
        rows=_table_rows(exported.analysis),
    )


def _template(path: Path) -> Template:
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(path.read_text(encoding="utf-8"))


def _pictures(exported: Exported, wanted: Collection[str] = ()) -> list[tuple[str, Markup]]:
    """Return the charts that show something, by title, as SVG inside the page; all of them, or those wanted."""
    analysis = exported.analysis
    if analysis.fastest is None:
        return []
    drawn = {"Time per call": charts.time, "Speedup": charts.speedup}
    if charts.has_share(analysis):
        drawn["Share of the limit"] = charts.share
    drawn["Rate"] = charts.bandwidth if is_memory_bound(analysis) else charts.throughput
    drawn = {title: build for title, build in drawn.items() if not wanted or title in wanted}
    with unchecked():
        specs = [
            specification(
                {
                    panel: build(analysis, lines)
                    for panel, lines in panels(analysis, by_peak=build is charts.throughput).items()
                },
                title,
                exported.facts,
            )
            for title, build in drawn.items()
        ]
    return [(title, Markup(svg.decode())) for title, svg in zip(drawn, pictures(specs, "svg"), strict=True)]


def _conditions(exported: Exported) -> list[tuple[str, str]]:
    environment = exported.environment
    if environment is None:
        return []
    settings = ", ".join(f"{name}={value}" for name, value in environment.settings.items())
    origin = exported.run.origin if exported.run else None
    return [
        *([("Origin", f"imported: {origin}")] if origin else []),
        ("Device", ", ".join(exported.devices) or environment.device.title),
        ("Driver", environment.device.driver or "none"),
        ("Measured", exported.when),
        *([("Threads", str(environment.threads or "unknown"))] if environment.device.kind == "cpu" else []),
        ("Governor", environment.governor or "unknown"),
        ("Libraries", ", ".join(f"{name} {version}" for name, version in environment.libraries.items())),
        ("Variables that change speed", settings or "none set"),
        ("System", f"Python {environment.python}, {environment.platform}"),
        ("gpuexplore", f"{environment.app_version}, commit {environment.commit or 'unknown'}"),
        *([("Device notes", " ".join(environment.device.notes))] if environment.device.kind in TORCH_KINDS else []),
    ]
