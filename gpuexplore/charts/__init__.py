"""Results in, `alt.Chart` out; each chart has its alternative text and says what it leaves out.

A chart is a file; `points.py` decides which panels of a run there are, `series.py` which lines, `palette.py` and
`axes.py` how they look, `exports/` writes them to files. Every function of results takes an analysis, or a run that
is analyzed with the defaults.

It imports analysis and below, and no Streamlit. A chart of a run is a file and a line in `points.py`; a chart that
one page alone has lies in its feature.
"""

from gpuexplore.charts.alt_text import left_out
from gpuexplore.charts.bandwidth import bandwidth, describe_bandwidth
from gpuexplore.charts.frame import to_frame
from gpuexplore.charts.heat_map import describe_heat_map, heat_map, swept_axes
from gpuexplore.charts.peaks import describe_peaks, peaks
from gpuexplore.charts.share import describe_mfu, describe_share, has_share, mfu, mfu_left_out, share, share_left_out
from gpuexplore.charts.speedup import describe_speedup, speedup, speedup_left_out
from gpuexplore.charts.throughput import describe_throughput, throughput
from gpuexplore.charts.time import describe_time, time, time_notes

__all__ = [
    "bandwidth",
    "describe_bandwidth",
    "describe_heat_map",
    "describe_mfu",
    "describe_peaks",
    "describe_share",
    "describe_speedup",
    "describe_throughput",
    "describe_time",
    "has_share",
    "heat_map",
    "left_out",
    "mfu",
    "mfu_left_out",
    "peaks",
    "share",
    "share_left_out",
    "speedup",
    "speedup_left_out",
    "swept_axes",
    "throughput",
    "time",
    "time_notes",
    "to_frame",
]
