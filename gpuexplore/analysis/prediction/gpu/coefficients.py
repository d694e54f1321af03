"""The coefficients of the terms, in natural logarithms unless said otherwise: what is expected of each, and fitted."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from math import log

import numpy as np

from gpuexplore.analysis.prediction.gpu.facts import Batch, Group, Numbers
from gpuexplore.once import once

FILE = "prediction.json"


@dataclass(frozen=True, slots=True)
class Expected:
    """A coefficient before anything was measured: a mean, and the standard deviation around it."""

    mean: float
    deviation: float


# Means are from the physics, deviations say how far a fit may go.
SINGLE: Mapping[str, Expected] = {
    "launch_in_graph": Expected(log(2e-6), 0.3),
    "launch_when_queued": Expected(log(1.5e-6), 0.3),  # beyond that in a graph
    "launch_when_single": Expected(log(6e-6), 0.3),  # beyond that of a queued call
    "power_of_sum": Expected(log(1.7), 0.3),  # p of (compute^p + memory^p)^(1/p)
    "wave": Expected(-0.5, 1.0),  # logit of the share of a last wave that idle multiprocessors cost
    "launch_by_clock": Expected(0.7, 0.15),  # not a logarithm: exponent of the clock
    "cap": Expected(log(0.92), 0.05),  # share of the peak where power does not limit
    "above_rated_clock": Expected(0.05, 0.1),  # of cards for games
    "cap_shared_lanes": Expected(log(0.66), 0.1),  # fp32 where int32 takes lanes away
    "attention_share": Expected(log(0.45), 0.3),  # of the peak of matrix units
    "attention_start_s": Expected(log(3e-6), 0.7),  # of a wave of blocks
    "bandwidth_share": Expected(log(0.87), 0.1),
    "layer_norm_cache_share": Expected(log(0.2), 0.5),  # of the L2 cache that rows in flight may take
    "softmax_cache_share": Expected(log(0.2), 0.5),
    "layer_norm_second_pass": Expected(log(0.5), 0.3),  # of the bytes, beyond that
    "softmax_second_pass": Expected(log(1.0), 0.3),
    "cache_bytes_per_clock": Expected(log(10.7), 0.3),  # of the L2 cache and a multiprocessor
    "cache_share": Expected(log(0.7), 0.3),  # of the L2 cache that data of the next call may take
    "cache_edge": Expected(log(4.0), 0.3),
    "long_rows": Expected(log(0.2), 0.7),  # of time, where rows are longer than 64 KiB and translation is slow
    "winograd_copies": Expected(log(0.5), 0.7),  # how often what it transforms reaches memory
    "winograd": Expected(0.2, 0.3),
    "implicit_product": Expected(0.0, 0.3),
    "searched": Expected(log(0.08), 0.5),  # what the best shape of a search saves
}
GROUPS: Mapping[str, tuple[tuple[str, ...], Expected]] = {
    "launch_of_family": (("family",), Expected(0.0, 0.4)),  # in a graph
    "launch_of_source": (("source",), Expected(0.0, 0.4)),  # of what its kind of calls adds
    "launch_of_both": (("source", "family"), Expected(0.0, 0.4)),
    "power": (("rate",), Expected(log(0.75), 0.4)),
    "power_of_architecture": (("architecture", "rate"), Expected(0.0, 0.15)),
    "power_of_family": (("family", "rate"), Expected(0.0, 0.15)),
    "power_of_graphics_memory": (("rate",), Expected(-0.2, 0.2)),
    "power_by_year": (("rate",), Expected(0.1, 0.1)),
    "attention_of_architecture": (("architecture",), Expected(0.0, 0.15)),
    "bandwidth_of_architecture": (("architecture",), Expected(0.0, 0.08)),
    "bandwidth_of_family": (("family",), Expected(0.0, 0.05)),
    "start_s": (("rate",), Expected(log(1e-6), 0.7)),  # of a wave of blocks of a product
    "small_tiles": (("rate",), Expected(log(0.3), 0.5)),
    "misaligned": (("rate",), Expected(log(0.1), 0.7)),
}
OF_ONE: Mapping[str, Expected] = {  # members of groups that are known better than the others
    "launch_of_source:event_after_synchronize": Expected(log(4), 0.4),  # 12 to 45 us, as its authors say
    "power:fp32": Expected(log(0.22), 0.4),
    "power:fp64": Expected(log(0.4), 0.4),
    "small_tiles:fp32": Expected(log(0.15), 0.5),
    "small_tiles:fp64": Expected(log(0.15), 0.5),
}


def expected(name: str) -> Expected:
    """Return what is expected of a coefficient: of one alone, or of a member of a group, ``group:member``."""
    group, found, _ = name.partition(":")
    return OF_ONE.get(name) or (GROUPS[group][1] if found else SINGLE[name])


def names_for(batch: Batch) -> tuple[str, ...]:
    """Return the coefficients that calls depend on."""
    grouped = (f"{name}:{member}" for name, (by, _) in GROUPS.items() for member in batch.group(*by).names)
    return (*SINGLE, *grouped)


@dataclass(frozen=True, slots=True)
class Coefficients:
    """Fitted values by name; what was not fitted is as expected."""

    values: Mapping[str, float] = field(default_factory=dict)

    def one(self, name: str) -> float:
        """Return the value of one coefficient."""
        return self.values.get(name, expected(name).mean)

    def exp(self, name: str) -> float:
        """Return what it is the logarithm of."""
        return float(np.exp(self.one(name)))

    def of(self, name: str, batch: Batch) -> Numbers:
        """Return the value of each call's member of a group."""
        group = batch.group(*GROUPS[name][0])
        return self._members(name, group)[group.places]

    def _members(self, name: str, group: Group) -> Numbers:
        return np.array([self.one(f"{name}:{member}") for member in group.names], dtype=np.float64)

    def __iter__(self) -> Iterator[tuple[str, float]]:
        return iter(self.values.items())


@once
def package_data() -> dict[str, object]:
    """Return what `scripts/fit_prediction.py` wrote: coefficients, corrections and intervals."""
    text = (files("gpuexplore.analysis") / "data" / FILE).read_text(encoding="utf-8")
    loaded: dict[str, object] = json.loads(text)
    return loaded
