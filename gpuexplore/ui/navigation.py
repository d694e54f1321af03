"""The pages of the app in the navigation's order: those of the core, declared here, and those of features."""

from collections.abc import Mapping
from pathlib import Path

from gpuexplore.core.once import once
from gpuexplore.hardware import ACCELERATORS
from gpuexplore.registry import PLACES, SERVER, Page, features
from gpuexplore.request import SHORT_NAMES

CORE = (
    Page(
        "benchmark",
        "Benchmark",
        "Benchmark",
        "Measure an operation here and see time, speedup and MFU, with what limits them.",
        reads=f"{' '.join(SHORT_NAMES.values())} run with baseline peak chart hide view slide explain",
        terms=("Operation", "Implementation", "Speedup", "MFU", "Peak"),
    ),
    Page(
        "runs",
        "Runs",
        "Runs",
        "Earlier runs by title, device and best rate: find, name and open them.",
        reads="q op device tag mine before",
        terms=("Run", "Operation", "Device", "Peak"),
    ),
    Page(
        "compare",
        "Compare",
        "Runs",
        "Two runs side by side: what got faster or slower, and what is inconclusive.",
        reads="a b",
        terms=("Run", "Interval", "Flag"),
    ),
    Page(
        "what-if",
        "Dtype what-if",
        "Predict",
        "Time, memory and error in every number format, on local and hypothetical GPUs.",
        reads="what op shape layers run at batch seq hidden heads ff "
        "device baseline dtype calls gpus times peaks price per measuring",
        terms=("Dtype", "Native / emulated / unsupported", "Prediction", "Kind of calls", "MFU"),
    ),
    Page(
        "roofline",
        "Roofline",
        "Roofline",
        "Results on the roofline of a device: the limit of each result, and its share of it.",
        reads="device dtype op runs recorded measuring",
        terms=("Arithmetic intensity", "Ridge point", "Attainable", "Bound"),
    ),
    Page(
        "devices",
        "Devices",
        SERVER,
        f"The peaks of this machine with sources, and {len(ACCELERATORS)} accelerators to compare with.",
        reads="q calibrating",
        terms=("Device", "Peak", "Measured peak"),
    ),
    Page(
        "queue",
        "Queue",
        SERVER,
        "Running and queued measurements, waiting times, and the state of the server.",
        reads="",
        terms=("Run", "Activity", "Supervisor"),
    ),
)


def file_of(name: str) -> Path:
    """Return the script of a page, for `st.switch_page`."""
    return pages()[name].file


@once
def pages() -> Mapping[str, Page]:
    """Return every page by its name, place by place."""
    order = (*PLACES, SERVER)
    every = [*CORE, *(feature.page for feature in features() if feature.page)]
    return {page.name: page for page in sorted(every, key=lambda page: order.index(page.place))}


FIRST_PAGE = next(iter(pages()))  # in the navigation's order
