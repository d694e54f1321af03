"""The most FLOP/s each device can reach in each dtype: what results will be compared with."""

from collections.abc import Sequence

import altair as alt
import pandas as pd

from gpuexplore.analysis.utilization.peak_sources import PEAK_SOURCES
from gpuexplore.charts.series import NEUTRAL
from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.model import Device
from gpuexplore.core.units import format_flop_per_s


def peaks(devices: Sequence[Device]) -> alt.LayerChart:
    """Return a bar for each dtype a device has a peak for, by its matrix products."""
    columns = ["row", "flop_per_s", "peak", "kind", "source"]
    found = [(device, device.peak(name, "matrix")) for device in devices for name in DTYPES]
    frame = pd.DataFrame(
        [
            (
                peak.dtype if len(devices) == 1 else f"{device.id}, {peak.dtype}",
                peak.flop_per_s,
                ", ".join(filter(None, (format_flop_per_s(peak.flop_per_s), peak.rate_note))),
                PEAK_SOURCES[peak.kind].label,
                peak.source,
            )
            for device, peak in found
            if peak is not None
        ],
        columns=columns,
    )
    listed = ", ".join(f"{row.row} {row.peak}" for row in frame.itertuples()) or "none is known"
    y = alt.Y("row:N", sort=list(frame["row"]), title=None, axis=alt.Axis(labelLimit=300, labelFlush=False))
    x = alt.X("flop_per_s:Q", title=None, axis=None)
    base = alt.Chart(frame).encode(y=y, x=x, tooltip=[alt.Tooltip(f"{name}:N") for name in ("peak", "kind", "source")])
    bars = base.mark_bar(height={"band": 0.6}, color=NEUTRAL)  # colours stand for implementations on its page
    words = base.mark_text(align="left", dx=6, fontSize=13, color=NEUTRAL).encode(text=alt.Text("peak:N"))
    height = 34 * max(1, len(frame))
    description = f"Peaks by dtype: {listed}"
    return alt.LayerChart(layer=[bars, words], width="container", height=height, description=description)
