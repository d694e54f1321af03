"""MFU against size: the share of the peak that each case reached; unknown peaks are left out."""

import altair as alt

from gpuexplore.charts.frame import Source, analysis_of
from gpuexplore.charts.share import describe_share_of, share_of, share_of_left_out


def mfu(source: Source) -> alt.LayerChart:
    """Return achieved / peak FLOP/s against size, with the kinds of peak in the axis title."""
    return share_of(analysis_of(source), by_memory=False)


def describe_mfu(source: Source) -> str:
    """Return the alternative text of the chart of MFU."""
    return describe_share_of(analysis_of(source), by_memory=False)


def mfu_left_out(source: Source) -> str | None:
    """Return what the chart of MFU does not show."""
    return share_of_left_out(analysis_of(source), by_memory=False)
