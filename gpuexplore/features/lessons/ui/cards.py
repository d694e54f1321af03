"""Cards of the place Learn: for each lesson and page one result in a sentence, with a small chart of its figures."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from gpuexplore.analysis.figure import LessonFigure, format_figure
from gpuexplore.analysis.model import Context
from gpuexplore.analysis.run.analyze import analyze
from gpuexplore.core import NotFound, Origin, once
from gpuexplore.features.lessons.lesson.blocks import Prose, block_of
from gpuexplore.features.lessons.lesson.evidence import computed_rows
from gpuexplore.features.lessons.lesson.expression import StepNames, figure_of, parse
from gpuexplore.features.lessons.lesson.quantities import result_row
from gpuexplore.recorded import recordings

STYLE = """<style>
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 18rem), 1fr)); gap: 1rem; }
.cards > a { padding: 1rem; border: 1px solid light-dark(#d9dee5, #343c47); border-radius: 0.5rem; color: inherit;
  text-decoration: none; }
.cards > a:is(:hover, :focus-visible) { border-color: light-dark(#1f66b0, #7cbaf5); }
.cards > a:focus-visible { outline: 2px solid light-dark(#1f66b0, #7cbaf5); }
.cards p { margin: 0.7rem 0 0.3rem; line-height: 1.4; }
.cards small { display: block; color: light-dark(#5c5f69, #a3a8b4); }
.cards small b { color: light-dark(#1f66b0, #7cbaf5); }
.chart { margin-top: 0.7rem; display: flex; height: 6rem; font-size: 0.8rem; line-height: 1.3; white-space: nowrap; }
.chart div { display: flex; align-items: center; gap: 0.4rem; }
.chart i { background: light-dark(#c3cad5, #4b5466); border-radius: 2px; flex: none; }
.chart .focus i { background: light-dark(#1f66b0, #7cbaf5); }
.bars { flex-direction: column; justify-content: center; gap: 0.5rem; }
.bars span:first-child { width: 4.9rem; text-align: right; }
.bars i { height: 1rem; width: max(2px, calc(var(--part) * (100% - 11.5rem))); }
.columns { gap: 3px; }
.columns div { flex: 1; flex-direction: column-reverse; gap: 0.1rem; }
.columns i { width: 100%; max-width: 4.5rem; height: max(2px, calc(var(--part) * 3.2rem)); }
</style>"""

TAB_STYLE = """<style>
a.lesson { display: inline-block; padding: 0.4rem 0.9rem; border-radius: 0.5rem; color: #fff !important;
  background: light-dark(#1f66b0, #2a76c4); text-decoration: none !important; }
a.lesson:is(:hover, :focus-visible) { background: #134a8a; }
a.lesson:focus-visible { outline: 2px solid light-dark(#134a8a, #cfe3fb); outline-offset: 2px; }
</style>"""  # of links that look like buttons: those of Streamlit open a tab each


def linked(name: str, title: str, href: str, *, about: str, footer: str = "") -> str:
    """Return the card of a lesson or a page as HTML, all of it a link; with `about` where it has no result."""
    card = cards().get(name)
    result = f"<p>{escape(about)}</p>"
    if card:
        text = re.sub(r"(?<=\de)-", "\N{NON-BREAKING HYPHEN}", escape(card["text"]))
        result = f"{card['picture']}<p>{text}</p><small>{escape(card['source'])}</small>"
    # _self: a link to the page that is shown would leave the address as it is, if Streamlit followed it
    return f'<a href="{escape(href)}" target="_self"><b>{escape(title)}</b>{result}<small>{footer}</small></a>'


@once
def cards() -> Mapping[str, Mapping[str, str]]:
    """Return the cards by the name of their lesson or page; none of what needs a feature that is switched off."""
    found = {}
    for name, given in tomllib.loads(Path(__file__).with_name("cards.toml").read_text(encoding="utf-8")).items():
        try:
            found[name] = _card(given)
        except NotFound:
            continue
    return found


def _card(given: Mapping[str, Any]) -> Mapping[str, str]:
    """Return a card.

    Raises:
        NotFound: a figure that it needs is not there.
    """
    used = [recording for recording in recordings() if recording.name in given.get("recordings", ())]
    rows = [
        result_row(analyzed, recording.name)
        for recording in used
        for analyzed in analyze(recording.results, context=Context(origin=Origin.RECORDED)).results
    ]
    rows = [row for row in rows if given.get("only", {}).items() <= row.labels.items()]
    for block in given.get("blocks", ()):
        rows += computed_rows(block_of(block["kind"], {key: block[key] for key in block if key != "kind"}), ())
    names = StepNames(tuple(rows))
    text = Prose.of(given["text"])
    chart = {label: figure_of(parse(written), names) for label, written in given.get("chart", {}).items()}
    cells = [int(figure_of(parse(written), names).value) for written in given.get("cells", ())]
    origins = {source for figure in chart.values() for source in figure.sources}
    said = f"{' and '.join(sorted(origins)).capitalize()}: {', '.join(recording.title for recording in used)}"
    source = given.get("source") or (said.removesuffix(": ") if origins else "Computed")
    focus = given.get("focus", next(iter(chart), ""))
    picture = _cells(*cells) if cells else _chart(chart, focus, given.get("columns", ""))
    return {"text": text.said(names), "source": source, "picture": picture}


def _chart(figures: Mapping[str, LessonFigure], focus: str, columns: str) -> str:
    """Return bars of figures, or columns over what is named; one stands out."""
    largest = max(figure.value for figure in figures.values())
    said = {label: format_figure(figure) for label, figure in figures.items()}
    marks = [
        _mark(
            f"{columns} {label}" if label == next(iter(figures)) else label,
            said[label],
            figure.value / largest,
            label == focus,
        )
        for label, figure in figures.items()
    ]
    alt = ", ".join(f"{columns} {label}: {words}".strip() for label, words in said.items())
    return _picture("columns" if columns else "bars", alt, marks)


def _cells(count: int, start: int, step: int, length: int) -> str:
    """Return the cells of a storage; those of a view stand out."""
    view = range(start, start + step * length, step)
    marks = [_mark(str(cell), "", 0.5, cell in view) for cell in range(count)]
    return _picture("columns", f"Storage of {count} cells; of the view: {', '.join(map(str, view))}", marks)


def _mark(label: str, said: str, part: float, stands_out: bool) -> str:
    kind = ' class="focus"' if stands_out else ""
    return f'<div{kind} style="--part:{part:.4f}"><span>{escape(label)}</span><i></i><span>{said}</span></div>'


def _picture(kind: str, alt: str, marks: Sequence[str]) -> str:
    # by style sheets, as Streamlit takes SVG out of HTML, and an image would not follow the theme
    return f'<div class="chart {kind}" role="img" aria-label="{escape(alt)}">{"".join(marks)}</div>'
