"""Makes one mistake in this process and prints what was observed: ``python -m gpuexplore.mistakes NAME DEVICE``."""

import json
import sys
from collections.abc import Mapping
from typing import Any

from gpuexplore.devices import device_named, discover
from gpuexplore.errors import GpuExploreError
from gpuexplore.measure.idle_threads import Timekeeper
from gpuexplore.mistakes.perform import perform


def main() -> None:
    """Print `{"observation": ...}`, or `{"reason": ...}` where it cannot be made."""
    name, device_id = sys.argv[1:]
    reported: list[Mapping[str, Any]] = []
    try:
        device = device_named(device_id, discover())
        perform({"name": name}, device, report=reported.append, cancelled=lambda: False, time=Timekeeper())
    except GpuExploreError as error:
        json.dump({"reason": str(error)}, sys.stdout)
    else:
        json.dump({"observation": reported[-1]}, sys.stdout)


if __name__ == "__main__":
    main()
