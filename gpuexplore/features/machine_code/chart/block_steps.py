"""Shared memory as its 32 banks with the words that the lanes of a warp want at once; and when each warp waits."""

from collections.abc import Sequence

import altair as alt
import pandas as pd

from gpuexplore.charts.series import NEUTRAL
from gpuexplore.features.machine_code.analysis.block_steps import BarrierInterval
from gpuexplore.features.machine_code.analysis.memory_access import ROW_BYTES, Word, collisions, passes_of, wanted_words
from gpuexplore.features.machine_code.chart.block_arrays import (
    AROUND,
    EDGE,
    FRAME,
    LEGEND,
    LETTER,
    ON_REQUESTED,
    PADDING,
    REQUESTED_COLOR,
    ROW_HEIGHT,
    UNUSED_COLOR,
    ArrayWindow,
    framed,
    lanes_label,
)
from gpuexplore.kernels.ptx import BANKS, Access

FIRST = "in the first pass of its bank"
CONFLICT = "bank conflict"
COLORS = alt.Scale(
    domain=[FIRST, CONFLICT],
    range=[REQUESTED_COLOR, alt.ExprRef("luminance(background) > 0.5 ? '#c0392b' : '#ff7f6b'")],
)


def bank_picture(access: Access, title: str) -> alt.LayerChart:
    """Return a row for each 128 bytes that are touched, a column for each bank, and the lanes in their words."""
    wanted = wanted_words(access)
    rows = sorted({word.word // BANKS for word in wanted})
    frame = pd.DataFrame(
        [_box(word, rows.index(word.word // BANKS)) for word in wanted],
        columns=["bank", "right", "middle", "row", "bottom", "center", "what", "lanes", "bytes", "wavefront"],
    )
    across = alt.Scale(domain=[0, BANKS], nice=False)
    down = alt.Scale(domain=[len(rows), 0], nice=False)
    starts = "[" + ",".join(str(row * ROW_BYTES) for row in rows) + "]"
    left = alt.Axis(
        title="byte", values=[row + 0.5 for row in range(len(rows))], grid=False, domain=False, ticks=False,
        labelExpr=f"{starts}[floor(datum.value)]", tickCount=len(rows),
    )  # fmt: skip
    above = alt.Axis(
        title=None,
        orient="top",
        values=list(range(BANKS)),
        tickCount=BANKS,
        labelExpr="datum.value % 4 == 0 ? datum.label : ''",
        labelOverlap=False,
        ticks=False,
        domain=False,
        grid=True,
        gridColor=FRAME,
        gridOpacity=0.35,
        zindex=0,
    )
    words = [
        alt.Tooltip("bank:Q", title="Bank"),
        alt.Tooltip("bytes:N", title="Byte"),
        alt.Tooltip("lanes:N", title="Lanes"),
        alt.Tooltip("wavefront:Q", title="Wavefront"),
    ]
    boxes = (
        alt.Chart(frame)
        .mark_rect(strokeWidth=0.5, stroke=EDGE)
        .encode(x=alt.X("bank:Q", scale=across, axis=above), x2="right:Q", y2="bottom:Q", tooltip=words)
        .encode(y=alt.Y("row:Q", scale=down, axis=left), color=alt.Color("what:N", scale=COLORS, legend=LEGEND))
    )
    labels = (
        alt.Chart(frame)
        .transform_filter(f"width / {BANKS} > {LETTER} * length(datum.lanes) + {PADDING}")
        .mark_text(fontSize=9.5, color=ON_REQUESTED)
        .encode(x=alt.X("middle:Q", scale=across), y=alt.Y("center:Q", scale=down), text=alt.Text("lanes:N"))
    )
    chart: alt.LayerChart = alt.LayerChart(
        layer=[boxes, framed(ArrayWindow(0, len(rows), 0, BANKS), across, down), labels]
    ).properties(
        width="container",
        height=AROUND + max(48, ROW_HEIGHT * len(rows)),
        title=alt.TitleParams(title, anchor="start", fontSize=13, fontWeight=600, color=NEUTRAL, offset=8),
        description=described(access, title),
    )
    return chart


def described(access: Access, title: str) -> str:
    """Return the alternative text: words, wavefronts, and the first bank of which several words are wanted."""
    wanted = wanted_words(access)
    taken, fewest = passes_of(access)
    summary = f"{title}: {len(wanted)} words in {taken} wavefronts, of {fewest} at least"
    if not collisions(wanted):
        return f"{summary}; no two lanes want different words of one bank at once"
    bank, lanes = collisions(wanted)[0]
    return f"{summary}; lanes {', '.join(map(str, lanes))} want different words of bank {bank}"


def _box(word: Word, row: int) -> dict[str, object]:
    return {
        "bank": word.bank,
        "right": word.bank + 1,
        "middle": word.bank + 0.5,
        "row": row,
        "bottom": row + 1,
        "center": row + 0.5,
        "what": FIRST if word.turn == 1 else CONFLICT,
        "lanes": lanes_label(word.lanes),
        "bytes": f"{word.word * 4} to {word.word * 4 + 3}",
        "wavefront": word.wavefront,
    }


WORKS = "works"
WAITS = "waits at a barrier"
FEW = 8


def warp_timeline(intervals: Sequence[BarrierInterval], now: int, steps: int) -> alt.LayerChart:
    """Return the warps over the block's steps, and a rule where one is.

    Args:
        intervals: what the warps do between barriers.
        now: number of the step that is looked at.
        steps: how many there are.
    """
    frame = pd.DataFrame(
        [row for interval in intervals for row in _rows(interval)],
        columns=["warp", "first", "last", "what", "said"],
    )
    warps = [f"warp {number}" for number in sorted({interval.warp for interval in intervals})]
    scale = alt.Scale(domain=[0.5, steps + 0.5], nice=False, zero=False)
    axis = alt.Axis(title="step of the block, in the order run here", grid=False, tickMinStep=1, format="d")
    y = alt.Y(
        "warp:N", sort=warps, title=None, scale=alt.Scale(domain=warps), axis=alt.Axis(labelOverlap=len(warps) > FEW)
    )
    words = [alt.Tooltip("warp:N", title="Warp"), alt.Tooltip("said:N", title="Steps"), alt.Tooltip("what:N")]
    color = alt.Color(
        "what:N", scale=alt.Scale(domain=[WORKS, WAITS], range=[REQUESTED_COLOR, UNUSED_COLOR]), legend=LEGEND
    )
    bars = alt.Chart(frame).mark_bar(height={"band": 0.62}).encode(
        x=alt.X("first:Q", scale=scale, axis=axis), x2="last:Q", y=y, color=color, tooltip=words
    )  # fmt: skip
    rule = (
        alt.Chart(pd.DataFrame({"now": [now]}))
        .mark_rule(strokeWidth=2, color=alt.ExprRef("luminance(background) > 0.5 ? '#0f151d' : '#e6e9ee'"))
        .encode(x=alt.X("now:Q", scale=scale))
    )
    chart: alt.LayerChart = alt.LayerChart(layer=[bars, rule]).properties(
        width="container",
        height=AROUND + (22 if len(warps) <= FEW else 13) * max(1, len(warps)),
        description=_described_warps(intervals, now),
    )
    return chart


def _described_warps(intervals: Sequence[BarrierInterval], now: int) -> str:
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
