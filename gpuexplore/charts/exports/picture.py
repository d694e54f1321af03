"""Charts as pictures, SVG and PNG, with title, device, date and run id inside.

Vega is run by a process of its own, which goes when it has answered: it takes 100 MB, and the web process none.
"""

import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import altair as alt

from gpuexplore.core.errors import GpuExploreError

PictureType = Literal["svg", "png"]
PROCESS = Path(__file__).with_name("picture_process.py")  # run as a file, so that it loads Vega alone
FONT = "'Source Sans 3', 'Source Sans Pro', 'Segoe UI', Helvetica, Arial, sans-serif"  # CSS: a bare 3 voids the list
CATEGORIES = ("#0d36a7", "#c6871c", "#00816e", "#773b6c", "#1d96d6", "#791906", "#7b52c8")  # of the light theme
CONFIG: Mapping[str, Any] = {
    "font": FONT,
    "background": "#ffffff",
    "view": {"stroke": None},
    "axis": {"domain": False, "ticks": False, "gridColor": "#e3e7ec", "labelColor": "#4c5665", "titleColor": "#4c5665"},
    "legend": {"labelColor": "#4c5665", "labelFontSize": 12},
    "title": {"anchor": "start", "fontSize": 16, "subtitleFontSize": 12, "subtitleColor": "#4c5665", "offset": 14},
    "range": {"category": list(CATEGORIES)},
    "axisX": {"grid": False},
}


class NotDrawn(GpuExploreError):
    """A chart could not be made a picture; says why."""


def pictures(charts: Sequence[Mapping[str, Any]], kind: PictureType) -> list[bytes]:
    """Return each chart as a picture, in one process.

    Args:
        charts: Vega-Lite, as `specification` returns it.
        kind: of the pictures.

    Raises:
        NotDrawn: the process failed or took too long.
    """
    request = json.dumps({"kind": kind, "charts": charts}).encode()
    limit_s = 60.0
    try:
        done = subprocess.run(
            [sys.executable, "-P", str(PROCESS)], input=request, capture_output=True, check=False, timeout=limit_s
        )
    except subprocess.TimeoutExpired as error:
        raise NotDrawn(f"the image was not rendered within {limit_s:.0f} s") from error
    if done.returncode:
        last = (done.stderr.decode(errors="replace").strip().splitlines() or ["no message"])[-1]
        raise NotDrawn(f"the image was not rendered: {last[:200]}")
    found: list[bytes] = []
    rest = done.stdout
    while rest:
        length, _, rest = rest.partition(b"\n")
        found.append(rest[: int(length)])
        rest = rest[int(length) :]
    return found


def specification(
    panels: Mapping[str | None, alt.LayerChart], title: str, subtitle: Sequence[str] = ()
) -> dict[str, Any]:
    """Return a chart, or its panels side by side, as Vega-Lite of a fixed size with a title inside.

    Args:
        panels: charts by the dtype they show; None is the whole.
        title: of the picture.
        subtitle: lines below it, e.g. device, date and run id.
    """
    made = {panel: _sized(chart, panel, len(panels)) for panel, chart in panels.items()}
    heading = {"text": title, "subtitle": list(subtitle)}
    if len(made) == 1:
        (spec,) = made.values()
        return {**spec, "title": heading, "config": CONFIG}
    rows = {"concat": list(made.values()), "columns": columns_of(len(made))}
    return {**rows, "title": heading, "config": CONFIG, "spacing": 24}


def columns_of(count: int) -> int:
    """Return how many of so many panels stand side by side."""
    return 2 if count == 4 else min(count, 3)


def _sized(chart: alt.LayerChart, panel: str | None, count: int) -> dict[str, Any]:
    with alt.data_transformers.enable("default", consolidate_datasets=False):
        spec: dict[str, Any] = chart.to_dict(validate=False)
    for name in ("config", "$schema", "params"):
        spec.pop(name, None)
    width = 820 if count == 1 else 300
    for layer in spec.get("layer", ()):
        for name in ("params", "name"):  # panels side by side share the data of layers of one name
            layer.pop(name, None)
        encoding = layer.get("encoding", {})
        for name, channel in encoding.items():
            conditions = channel.get("condition") if isinstance(channel, dict) else None
            of_legend = (
                [each for each in conditions if '"param"' in json.dumps(each)] if isinstance(conditions, list) else []
            )
            encoding[name] = {"value": of_legend[0]["value"]} if of_legend else channel
    spec |= {"width": width, "height": min(int(spec.get("height", 400)), 520)}
    spec = _at_width(spec, width)
    return spec | ({"title": panel} if panel else {})


def _at_width(spec: Any, width: int) -> Any:
    """Return a chart whose expressions state its width in pixels: no panel of several knows it."""
    if isinstance(spec, list):
        return [_at_width(part, width) for part in spec]
    if not isinstance(spec, dict):
        return spec
    return {
        name: re.sub(r"\bwidth\b", str(width), part) if name == "expr" else _at_width(part, width)
        for name, part in spec.items()
    }
