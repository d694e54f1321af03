"""A run as one self-contained HTML file, which prints well, and as what a notebook shows of it."""

from collections.abc import Collection
from pathlib import Path

from jinja2 import Environment, Template
from markupsafe import Markup

from gpuexplore import charts
from gpuexplore.analysis.run.summary import is_memory_bound, quality_of
from gpuexplore.charts.exports.exported import Exported
from gpuexplore.charts.exports.picture import NotDrawn, pictures, specification
from gpuexplore.charts.exports.texts import HEADING, table_rows
from gpuexplore.charts.points import panels
from gpuexplore.charts.quick_altair import unchecked
from gpuexplore.hardware import TORCH_KINDS
from gpuexplore.request import as_command, as_python, from_experiment


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
        rows=table_rows(exported.analysis),
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
        rows=table_rows(exported.analysis),
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
