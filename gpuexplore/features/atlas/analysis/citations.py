"""Who measured what the atlas shows, under which licence, and what to cite."""

from dataclasses import dataclass
from functools import cache

from gpuexplore.analysis.utilization.peak_sources import PublishedResult
from gpuexplore.recorded import Recording
from gpuexplore.recorded.published import Source, sources

HERE = "gpuexplore"  # the name of what gpuexplore recorded


@dataclass(frozen=True, slots=True)
class Citation:
    """One collection of measurements.

    Attributes:
        name: what readers call it; several recordings of gpuexplore share one.
        url: where it is; None for what comes with gpuexplore.
        licence: SPDX identifier.
        text: what to cite.
        how: how its authors measured.
    """

    name: str
    url: str | None
    licence: str
    text: str
    how: str


@cache
def of_source(source: Source) -> Citation:
    """Return the citation of a repository of measurements."""
    return Citation(source.title, source.url, source.licence, source.citation, source.how)


def of_product(published: PublishedResult) -> Citation:
    """Return the citation of one of the best published products."""
    return of_source(next(source for source in sources() if published.source.startswith(f"{source.url}/")))


def of_recording(recording: Recording) -> Citation:
    """Return the citation of a recording that comes with gpuexplore."""
    told = recording.provenance
    return Citation(HERE, None, "Apache-2.0", f"{told.recorded_by}: {recording.title}", told.method)
