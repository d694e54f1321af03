"""How calls follow one another where a time is taken: what of a launch is in the time of one of them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from gpuexplore.recorded.published import Timing

Calls = Literal["graph", "queued", "single"]
USUAL_CALLS: Calls = "queued"

CALLS: Mapping[Calls, str] = MappingProxyType(
    {
        "graph": "replayed in a CUDA graph: the least launch there is",
        "queued": "one call after the other from Python or C++: a launch overlaps with the call before",
        "single": "one call on an idle device, waited for: its launch is part of the time",
    }
)

# The kind of call each way of timing stands for.
CALLS_OF_TIMING: Mapping[Timing, Calls] = MappingProxyType(
    {
        "graph": "graph",
        "device": "graph",
        "queued": "queued",
        "do_bench": "queued",
        "best_of_many": "queued",
        "event": "single",
        "event_after_synchronize": "single",
    }
)
