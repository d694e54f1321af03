"""Draws charts for `gpuexplore.charts.exports.picture`: JSON on standard input, pictures on standard output."""

import json
import sys

import vl_convert


def main() -> None:
    """Answer each chart with a line of its length in bytes, and the picture."""
    request = json.load(sys.stdin)
    scale = 2.0  # pixels of a PNG for each of the chart
    for chart in request["charts"]:
        if request["kind"] == "svg":
            drawn = vl_convert.vegalite_to_svg(chart).encode()
        else:
            drawn = vl_convert.vegalite_to_png(chart, scale=scale)
        sys.stdout.buffer.write(b"%d\n" % len(drawn))
        sys.stdout.buffer.write(drawn)


if __name__ == "__main__":
    main()
