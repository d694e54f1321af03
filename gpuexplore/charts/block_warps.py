"""The warps of a block, a row each: the steps they work in, and how long they wait at a barrier for the others."""

from collections.abc import Sequence

import altair as alt
import pandas as pd

from gpuexplore.analysis.kernels.block_steps import Stretch
from gpuexplore.charts.block_arrays import AROUND, LEGEND, REQUESTED_COLOR, UNUSED_COLOR

WORKS, WAITS = "works", "waits at a barrier"
COLORS = alt.Scale(domain=[WORKS, WAITS], range=[REQUESTED_COLOR, UNUSED_COLOR])
TEXT = alt.ExprRef("luminance(background) > 0.5 ? '#0f151d' : '#e6e9ee'")
FEW, ROW_HEIGHT, LOW_ROW_HEIGHT = 8, 22, 13
COLUMNS = ("warp", "first", "last", "what", "said")


def warp_timeline(stretches: Sequence[Stretch], now: int, steps: int) -> alt.LayerChart:
    """Return the warps over the block's steps, and a rule where one is.

    Args:
        stretches: what the warps do between barriers.
        now: number of the step that is looked at.
        steps: how many there are.
    """
    frame = pd.DataFrame([row for stretch in stretches for row in _rows(stretch)], columns=list(COLUMNS))
    warps = [f"warp {number}" for number in sorted({stretch.warp for stretch in stretches})]
    scale = alt.Scale(domain=[0.5, steps + 0.5], nice=False, zero=False)
    axis = alt.Axis(title="step of the block, in the order run here", grid=False, tickMinStep=1, format="d")
    y = alt.Y(
        "warp:N", sort=warps, title=None, scale=alt.Scale(domain=warps), axis=alt.Axis(labelOverlap=len(warps) > FEW)
    )
    words = [alt.Tooltip("warp:N", title="Warp"), alt.Tooltip("said:N", title="Steps"), alt.Tooltip("what:N")]
    color = alt.Color("what:N", scale=COLORS, legend=LEGEND)
    bars = alt.Chart(frame).mark_bar(height={"band": 0.62}).encode(
        x=alt.X("first:Q", scale=scale, axis=axis), x2="last:Q", y=y, color=color, tooltip=words
    )  # fmt: skip
    rule = (
        alt.Chart(pd.DataFrame({"now": [now]}))
        .mark_rule(strokeWidth=2, color=TEXT)
        .encode(x=alt.X("now:Q", scale=scale))
    )
    chart: alt.LayerChart = alt.LayerChart(layer=[bars, rule]).properties(
        width="container",
        height=AROUND + (ROW_HEIGHT if len(warps) <= FEW else LOW_ROW_HEIGHT) * max(1, len(warps)),
        description=described(stretches, now),
    )
    return chart


def described(stretches: Sequence[Stretch], now: int) -> str:
    """Return the alternative text: which warps wait and which work or have still to begin."""
    waiting = [stretch.warp for stretch in stretches if stretch.released and stretch.last <= now < stretch.released]
    count = len({stretch.warp for stretch in stretches})
    met = len({stretch.phase for stretch in stretches}) - 1
    named = f"warp{'s' if len(waiting) > 1 else ''} {', '.join(map(str, waiting))}" if waiting else "no warp"
    return (
        f"{count} warps that meet {met} times; at step {now} {named} wait{'' if len(waiting) > 1 else 's'} at a barrier"
    )


def _rows(stretch: Stretch) -> list[dict[str, object]]:
    warp = f"warp {stretch.warp}"
    rows: list[dict[str, object]] = [
        {
            "warp": warp,
            "first": stretch.first - 0.5,
            "last": stretch.last + 0.5,
            "what": WORKS,
            "said": f"{stretch.first} to {stretch.last}",
        }
    ]
    if stretch.released is not None and stretch.released > stretch.last:
        rows.append(
            {
                "warp": warp,
                "first": stretch.last + 0.5,
                "last": stretch.released + 0.5,
                "what": WAITS,
                "said": f"{stretch.last} to {stretch.released}",
            }
        )
    return rows
