"""Published measurements of others, with source, licence and kind of timing by row: none of it is gpuexplore's."""

import csv
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from math import isfinite
from typing import Literal, get_args
from urllib.parse import unquote, urlsplit

from gpuexplore.core import InvalidInput, Shape, check_known, once, require
from gpuexplore.core.dtypes import format_named
from gpuexplore.hardware import ACCELERATORS
from gpuexplore.operations import operation_named
from gpuexplore.recorded.validation import named

# Reads the published measurements: a row that names an unknown device, shape, dtype or source is refused.


Timing = Literal["graph", "device", "queued", "do_bench", "event", "event_after_synchronize", "best_of_many"]

# How a time was taken, and what of a launch is in it.
TIMINGS: Mapping[Timing, str] = {
    "graph": "in a CUDA graph, including about 1 to 3 µs of launch",
    "device": "the kernels' own time on the device",
    "queued": "queued calls: launches overlap with the previous call",
    "do_bench": "queued calls with the L2 cache cleared between them",
    "event": "one call between two events, including 3 to 12 µs of launch",
    "event_after_synchronize": "one call between two events on an idle device, including 7 to 45 µs of launch",
    "best_of_many": "the best of many calls on large arrays",
}
HOST = "github.com"


@dataclass(frozen=True, slots=True)
class Source:
    """A public repository of measurements.

    Attributes:
        repository: owner and name on GitHub.
        title: what its authors call it.
        licence: SPDX identifier.
        citation: what to cite.
        how: how its authors measured.
    """

    repository: str
    title: str
    licence: str
    citation: str
    how: str

    @property
    def url(self) -> str:
        """Its address."""
        return f"https://{HOST}/{self.repository}"


@dataclass(frozen=True, slots=True)
class PublishedMeasurement:
    """One call that somebody else measured and published.

    Attributes:
        spec_key: the device's row in the table of accelerators.
        operation: its name.
        dtype: a format of FORMATS.
        shape: axes of the operation.
        time_s: seconds of a call, with what `timing` says of the launch.
        timing: how it was taken.
        conditions: the same in the words of the collection, with versions where the source states them.
        url: the file it comes from, at one commit.
        source: the repository of that file.
    """

    spec_key: str
    operation: str
    dtype: str
    shape: Shape
    time_s: float
    timing: Timing
    conditions: str
    url: str
    source: Source = field(hash=False)


@once
def sources() -> tuple[Source, ...]:
    """Return the repositories that rows come from."""
    return tuple(Source(**entry) for entry in tomllib.loads(_text("sources.toml"))["source"])


@once
def published_measurements() -> tuple[PublishedMeasurement, ...]:
    """Return every row, in the order of the file.

    Raises:
        InvalidInput: names the line and what is wrong there.
    """
    return read_measurements(_text("measurements.csv"))


def read_measurements(text: str, refused: list[str] | None = None) -> tuple[PublishedMeasurement, ...]:
    """Return the rows of a CSV file's text.

    Args:
        refused: takes what is wrong with each row that is left out, which then may come from any site; None: a wrong
            row is an error, and rows come from the collections of `sources`.

    Raises:
        InvalidInput: names the line and what is wrong there.
    """
    keys = {row.key for row in ACCELERATORS}
    known = {source.repository: source for source in sources()}
    shapes: dict[tuple[str, str], Shape] = {}
    found = []
    lines = csv.reader(text.splitlines())
    heading = next(lines, [])
    for cells in lines:
        try:
            with named(f"measurements.csv, line {lines.line_num}"):
                require(len(cells) == len(heading), "row", f"{len(cells)} cells", heading)
                row = dict(zip(heading, cells, strict=True))
                require(row["gpu_key"] in keys, "gpu_key", row["gpu_key"], "keys of the table of accelerators")
                place = row["operation"], row["shape"]
                if place not in shapes:
                    shapes[place] = _shape(*place)
                found.append(_measurement(row, shapes[place], None if refused is not None else known))
        except InvalidInput as problem:
            if refused is None:
                raise
            refused.append(str(problem))
    return tuple(found)


def _measurement(row: Mapping[str, str], shape: Shape, known: Mapping[str, Source] | None) -> PublishedMeasurement:
    """Return the measurement of a row; `known` are the collections that it may come from, None: any site."""
    time_s = float(row["time_s"])
    timing = row["timing"]
    require(isfinite(time_s) and time_s > 0, "time_s", row["time_s"], "seconds above 0")
    check_known("timing", timing, get_args(Timing))
    dtype = format_named(row["dtype"])
    if reason := operation_named(row["operation"]).unsupported(dtype):
        raise InvalidInput(reason)
    link = urlsplit(row["source"])
    repository = "/".join(unquote(link.path).split("/")[1:3])
    if known is None and link.scheme == "https" and link.netloc:
        source = Source(
            repository, repository or link.netloc, row.get("licence", ""), link.netloc, row.get("conditions", "")
        )
    elif known and (link.scheme, link.netloc) == ("https", HOST) and repository in known:
        source = known[repository]
    elif known is None:
        raise InvalidInput.of("source", row["source"], "an https link")
    else:
        raise InvalidInput.of("source", row["source"], f"https links to {', '.join(known)} on {HOST}")
    return PublishedMeasurement(
        spec_key=row["gpu_key"],
        operation=row["operation"],
        dtype=dtype.name,
        shape=shape,
        time_s=time_s,
        timing=next(name for name in TIMINGS if name == timing),
        conditions=row.get("conditions", ""),
        url=row["source"],
        source=source,
    )


def _shape(operation: str, text: str) -> Shape:
    """Return the axes of a text like ``m=8;n=4`` in the operation's order."""
    contract = operation_named(operation)
    parts = [part.partition("=") for part in text.split(";")]
    lengths = {name: length for name, _, length in parts}
    axes = (*contract.axes, *(flag for flag in contract.flags if flag in lengths))
    require(sorted(name for name, _, _ in parts) == sorted(axes), f"axes of {operation}", text, contract.axes)
    shape = Shape.of(**{axis: int(lengths[axis]) for axis in axes})
    for axis, length in shape.axes:
        if not 1 <= length <= (most := contract.limits.get(axis, 1)):
            raise InvalidInput.of(axis, length, f"1 to {most}")
    if problem := contract.problem(shape):
        raise InvalidInput(problem)
    return shape


def _text(name: str) -> str:
    return (files("gpuexplore.recorded.published") / name).read_text(encoding="utf-8")


__all__ = ["TIMINGS", "PublishedMeasurement", "Source", "Timing", "published_measurements", "sources"]
