"""What others measured and published, with licence, source and kind of timing by row: none of it is gpuexplore's."""

from gpuexplore.recorded.published.measurements import (
    TIMINGS,
    PublishedMeasurement,
    Source,
    Timing,
    published_measurements,
    sources,
)

__all__ = ["TIMINGS", "PublishedMeasurement", "Source", "Timing", "published_measurements", "sources"]
