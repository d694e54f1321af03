"""A report as text, and as one HTML file with nothing beside it, which can be sent."""

from pathlib import Path

from jinja2 import Environment

from gpuexplore.features.selftest.suite.contract import CheckOutcome, SelftestReport
from gpuexplore.units import format_seconds

TEMPLATE = Path(__file__).with_name("report.html.jinja")
STYLE = Path(__file__).with_name("report.css")
SHORTEST_SHOWN_S = 0.01  # what was skipped took no time worth a figure


def html(report: SelftestReport) -> str:
    """Return the report as an HTML document."""
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["seconds"] = format_seconds
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    return template.render(report=report, style=STYLE.read_text(encoding="utf-8"))


def text(report: SelftestReport) -> str:
    """Return the report as lines for a terminal."""
    lines = [report.headline, *(f"  {note}" for note in notes(report))]
    for outcome in report.outcomes:
        lines += ["", outcome_line(outcome), *(f"  {sentence}" for sentence in outcome.said)]
        width = max((len(figure.name) for figure in outcome.figures), default=0)
        lines += [
            f"    {figure.name.ljust(width)}  {figure.text}{f'  ({figure.note})' if figure.note else ''}"
            for figure in outcome.figures
        ]
    return "\n".join(lines)


def outcome_line(outcome: CheckOutcome) -> str:
    """Return how a check ended, in a line."""
    took = f"  ({format_seconds(outcome.lasted_s)})" if outcome.lasted_s >= SHORTEST_SHOWN_S else ""
    return f"{outcome.verdict.upper():7}  {outcome.title}{took}"


def notes(report: SelftestReport) -> tuple[str, ...]:
    """Return what a reader has to know before any figure."""
    return tuple(filter(None, (report.stand_in and f"Simulated: {report.stand_in}", report.no_gpu)))
