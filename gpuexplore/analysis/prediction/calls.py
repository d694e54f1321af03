"""How calls follow one another where a time is taken: what of a launch is in the time of one of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from gpuexplore.recorded.published import PublishedMeasurement, Timing

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


@dataclass(frozen=True, slots=True)
class Conditions:
    """What is known of a call beside its case.

    Attributes:
        calls: how calls follow one another.
        searched: the shape is the best of a search, as published ones often are.
        weight_sets: how many right-hand matrices take turns, as the layers of a network do: few stay in a cache; None
            is as usual for the operation, SETS_IN_TURN for a linear layer and one for others.
        quantises: the left-hand matrix is quantised in a kernel before; None is as usual, for a linear layer in fp8.
        source: a way of taking times that has launches of its own; empty is as `calls` say.
    """

    calls: Calls = USUAL_CALLS
    searched: bool = False
    weight_sets: int | None = None
    quantises: bool | None = None
    source: str = ""


USUAL = Conditions()
IN_TURN, SETS_IN_TURN = "weights of 6 layers in turn", 6
QUANTISING = "includes quantising the activations"


def conditions_of(measured: PublishedMeasurement) -> Conditions:
    """Return the conditions of a published measurement, which its text states."""
    timing, text = measured.timing, measured.conditions
    return Conditions(
        CALLS_OF_TIMING[timing],
        weight_sets=SETS_IN_TURN if IN_TURN in text else 1,
        quantises=QUANTISING in text,
        source="" if timing in CALLS else timing,
    )
