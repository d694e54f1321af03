"""Results in, `alt.Chart` out; each chart has its alternative text and says what it leaves out.

`over_sizes.py` has the charts of a run, `points.py` decides which panels there are, `series.py` which lines and how
they look, `exports/` writes them to files. Every function of results takes an analysis,
or a run that is analyzed with the defaults.

It imports analysis and below, and no Streamlit. A chart of a run is a function and a line in `points.py`; a chart that
one page alone has lies in its feature.
"""

from gpuexplore.charts.heat_map import heat_map, swept_axes
from gpuexplore.charts.over_sizes import (
    bandwidth,
    has_share,
    left_out,
    peak_notes,
    share,
    share_left_out,
    speedup,
    speedup_left_out,
    throughput,
    time,
    time_notes,
)
from gpuexplore.charts.points import Lines, labelled_rule, levels, panels, shown_lines, with_halo
from gpuexplore.charts.series import (
    LABEL_LIMIT,
    LAYERED,
    MOST_TICKS,
    NEUTRAL,
    POINTS,
    WIDE,
    Spec,
    color_of,
    layer,
    log_axis,
    log_ticks,
    nominal,
    number,
    powers_of_two,
    si_label,
    to_frame,
    x_value,
    y_value,
)

__all__ = [
    "LABEL_LIMIT",
    "LAYERED",
    "MOST_TICKS",
    "NEUTRAL",
    "POINTS",
    "WIDE",
    "Lines",
    "Spec",
    "bandwidth",
    "color_of",
    "has_share",
    "heat_map",
    "labelled_rule",
    "layer",
    "left_out",
    "levels",
    "log_axis",
    "log_ticks",
    "nominal",
    "number",
    "panels",
    "peak_notes",
    "powers_of_two",
    "share",
    "share_left_out",
    "shown_lines",
    "si_label",
    "speedup",
    "speedup_left_out",
    "swept_axes",
    "throughput",
    "time",
    "time_notes",
    "to_frame",
    "with_halo",
    "x_value",
    "y_value",
]
