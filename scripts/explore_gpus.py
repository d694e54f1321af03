"""Writes what Explore shows of GPUs of the table: predicted lines and points measured by others, one row a line.

Usage: python -m scripts.explore_gpus. A test fails when the file is not what this would write.
"""

import json
from typing import Any

from gpuexplore.analysis.prediction import calibrate
from gpuexplore.features.atlas.analysis import points
from gpuexplore.features.atlas.analysis.answers import case_of
from gpuexplore.features.explore.facts import GPUS, SHIPPED, TIMES, measured_point, predicted_lines, sizes
from gpuexplore.hardware import table_device

DIGITS = 9  # more than machines agree on


def main() -> None:
    """Write the file."""
    rows = {name: ",\n".join(map(json.dumps, found)) for name, found in worked_out().items()}
    SHIPPED.write_text(f'{{"lines": [\n{rows["lines"]}\n],\n"points": [\n{rows["points"]}\n]}}\n', encoding="utf-8")


def worked_out() -> dict[str, list[list[Any]]]:
    """Return operation, dtype, GPU and the times of each size; and each point, with its axes and its source."""
    times: dict[tuple[str, str, str], dict[int, list[float]]] = {}
    for row in predicted_lines([*map(table_device, GPUS)], calibrate()):
        of_line = times.setdefault((row["op"], row["dtype"], row["key"]), {})
        of_line[row["n"]] = [float(f"{row[name]:.{DIGITS}g}") for name in TIMES]
    lines = [[*about, [found.get(size) for size in sizes(about[0])]] for about, found in times.items()]
    return {"lines": lines, "points": _points()}


def _points() -> list[list[Any]]:
    found = []
    for point in points():
        case = case_of(point.operation, point.shape, point.dtype, point.device)
        source = f"{point.origin} by {point.citation.name}"
        if point.spec_key in GPUS and measured_point(case, point.time_s, source):
            about = [point.operation, point.dtype, point.spec_key]
            found.append([*about, dict(point.shape.axes), point.time_s, source])
    return found


if __name__ == "__main__":
    main()
