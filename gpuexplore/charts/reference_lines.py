"""Reference lines across a chart: 1×, a peak, 100 %."""

from collections.abc import Mapping
from typing import Literal

import altair as alt

from gpuexplore.charts.series import NEUTRAL

ReferenceLine = tuple[alt.Chart, ...]
CROWDED = 3.0  # two labels closer than this factor would touch at one end


def rule(value: float) -> ReferenceLine:
    """Return a dashed line at `value` of the y axis."""
    return (_base(value, "").mark_rule(color=NEUTRAL, strokeDash=[2, 3], strokeWidth=1.5),)


def labelled_rule(value: float, label: str, *, at_right: bool = False) -> ReferenceLine:
    """Return a dashed line at `value` of the y axis, with its label above one end."""
    base = _base(value, label)
    align: Literal["left", "right"] = "right" if at_right else "left"
    text = base.mark_text(color=NEUTRAL, align=align, dx=-4 if at_right else 4, dy=-8)
    end = alt.XValue("width" if at_right else 0)  # type: ignore[no-untyped-call]  # Altair annotates no XValue
    return *rule(value), *with_halo(text.encode(text=alt.Text("label:N"), x=end))


def with_halo(text: alt.Chart) -> ReferenceLine:
    """Return `text` with a rim in the colour of the background below it, so that lines and points leave it readable."""
    rim = text.copy()
    rim.mark.stroke = alt.expr("background")
    rim.mark.strokeWidth, rim.mark.strokeJoin, rim.mark.tooltip, rim.mark.aria = 4, "round", None, False
    return rim, text


def peak_rules(peaks: Mapping[str, float]) -> list[ReferenceLine]:
    """Return a line for each peak by its label, crowded labels at alternate ends."""
    drawn: list[ReferenceLine] = []
    above, at_right = None, False
    for label, value in sorted(peaks.items(), key=lambda item: -item[1]):
        at_right = above is not None and above / value < CROWDED and not at_right
        drawn.append(labelled_rule(value, label, at_right=at_right))
        above = value
    return drawn


def _base(value: float, label: str) -> alt.Chart:
    return alt.Chart(alt.InlineData(values=[{"value": value, "label": label}])).encode(y=alt.Y("value:Q"))
