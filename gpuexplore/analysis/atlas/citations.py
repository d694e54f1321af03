"""Who measured what the atlas shows, under which licence, and what to cite."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from urllib.parse import urlsplit

from gpuexplore.analysis.utilization.published import PublishedResult
from gpuexplore.recorded import Recording
from gpuexplore.recorded.published import Source

HERE = "gpuexplore"  # the name of what gpuexplore recorded


@dataclass(frozen=True, slots=True)
class Citation:
    """One collection of measurements.

    Attributes:
        name: what readers call it; several recordings of gpuexplore share one.
        url: where it is; None for what comes with gpuexplore.
        licence: SPDX identifier; None where its authors state none.
        text: what to cite.
        how: how its authors measured.
    """

    name: str
    url: str | None
    licence: str | None
    text: str
    how: str


# The collections of published_matmul.csv, by the repository their links name.
_OF_PRODUCTS: Mapping[str, Citation] = MappingProxyType(
    {
        "stas00/ml-engineering": Citation(
            "Machine Learning Engineering",
            "https://github.com/stas00/ml-engineering",
            "CC-BY-SA-4.0",
            "S. Bekman: Machine Learning Engineering, maximum achievable matmul FLOPS",
            "the best of a search over shapes, the mean of 100 queued calls",
        ),
        "mag-/gpu_benchmark": Citation(
            "gpu_benchmark",
            "https://github.com/mag-/gpu_benchmark",
            None,
            "mag-: gpu_benchmark, statistics of mamf-finder",
            "the best of a search over shapes, the best time of each",
        ),
    }
)
_NOTEBOOK = Citation(
    "Teaching notebook 004",
    None,
    None,
    "the teaching notebooks this project grew from, number 004",
    "the mean of 5 calls without a warm-up, inputs all ones",
)


@cache
def of_source(source: Source) -> Citation:
    """Return the citation of a repository of measurements."""
    return Citation(source.title, source.url, source.licence, source.citation, source.how)


def of_product(published: PublishedResult) -> Citation:
    """Return the citation of one of the best published products."""
    repository = "/".join(urlsplit(published.source).path.split("/")[1:3])
    return _OF_PRODUCTS.get(repository, _NOTEBOOK)


def of_recording(recording: Recording) -> Citation:
    """Return the citation of a recording that comes with gpuexplore."""
    told = recording.provenance
    return Citation(HERE, None, "Apache-2.0", f"{told.recorded_by}: {recording.title}", told.method)
