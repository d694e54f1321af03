"""The warps of a block, a row each: the steps they work in, and how long they wait at a barrier for the others."""

from collections.abc import Sequence

import altair as alt
import pandas as pd

from gpuexplore.features.machine_code.analysis.block_steps import BarrierInterval
from gpuexplore.features.machine_code.chart.block_arrays import AROUND, LEGEND, REQUESTED_COLOR, UNUSED_COLOR

WORKS, WAITS = "works", "waits at a barrier"
COLORS = alt.Scale(domain=[WORKS, WAITS], range=[REQUESTED_COLOR, UNUSED_COLOR])
TEXT = alt.ExprRef("luminance(background) > 0.5 ? '#0f151d' : '#e6e9ee'")
FEW, ROW_HEIGHT, LOW_ROW_HEIGHT = 8, 22, 13
COLUMNS = ("warp", "first", "last", "what", "said")


def warp_timeline(intervals: Sequence[BarrierInterval], now: int, steps: int) -> alt.LayerChart:
    """Return the warps over the block's steps, and a rule where one is.

    Args:
        intervals: what the warps do between barriers.
        now: number of the step that is looked at.
        steps: how many there are.
    """
    frame = pd.DataFrame([row for interval in intervals for row in _rows(interval)], columns=list(COLUMNS))
    warps = [f"warp {number}" for number in sorted({interval.warp for interval in intervals})]
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
        description=described(intervals, now),
    )
    return chart


def described(intervals: Sequence[BarrierInterval], now: int) -> str:
    """Return the alternative text: which warps wait and which work or have still to begin."""
    waiting = [
        interval.warp for interval in intervals if interval.released and interval.last <= now < interval.released
    ]
    count = len({interval.warp for interval in intervals})
    met = len({interval.phase for interval in intervals}) - 1
    named = f"warp{'s' if len(waiting) > 1 else ''} {', '.join(map(str, waiting))}" if waiting else "no warp"
    return (
        f"{count} warps that meet {met} times; at step {now} {named} wait{'' if len(waiting) > 1 else 's'} at a barrier"
    )


def _rows(interval: BarrierInterval) -> list[dict[str, object]]:
    warp = f"warp {interval.warp}"
    rows: list[dict[str, object]] = [
        {
            "warp": warp,
            "first": interval.first - 0.5,
            "last": interval.last + 0.5,
            "what": WORKS,
            "said": f"{interval.first} to {interval.last}",
        }
    ]
    if interval.released is not None and interval.released > interval.last:
        rows.append(
            {
                "warp": warp,
                "first": interval.last + 0.5,
                "last": interval.released + 0.5,
                "what": WAITS,
                "said": f"{interval.last} to {interval.released}",
            }
        )
    return rows
