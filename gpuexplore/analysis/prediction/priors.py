"""What is expected of a case before anything like it was measured, and what makes cases alike: the model's choices.

Those of a GPU were chosen by hand from the physics: a card with few watts for its peak holds a lower clock; kernels of
one architecture are alike. Those of a CPU are rounded from what makes an earlier recording likeliest (the
marginal likelihood), which is not the one that ships. `benchmarks/prediction.py` judges them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple

from gpuexplore.analysis.model import Bound
from gpuexplore.analysis.prediction.ideal_time import Place
from gpuexplore.analysis.prediction.regression import Component

Way = Literal["native", "narrow", "emulated", "unsupported", "kernel"]


class Kind(NamedTuple):
    """Cases that are expected to reach the same share of their ideal.

    Attributes:
        bound: the largest term.
        way: native or emulated; `narrow` for 16-bit formats on vector units, `kernel` for CUDA kernels of ours.
    """

    place: Place
    bound: Bound
    way: Way


@dataclass(frozen=True, slots=True)
class Prior:
    """What is expected of a kind of case before anything like it was seen.

    Attributes:
        efficiency: share of the ideal that is reached.
        deviation: of its natural logarithm.
    """

    efficiency: float
    deviation: float


PRIORS: Mapping[Kind, Prior] = MappingProxyType(
    {
        Kind("gpu", "compute", "native"): Prior(0.8, 0.1),
        Kind("gpu", "compute", "narrow"): Prior(0.5, 0.3),  # P100 well, GTX 16 hardly at all
        Kind("gpu", "compute", "emulated"): Prior(0.5, 0.3),
        Kind("gpu", "compute", "kernel"): Prior(0.25, 0.8),
        Kind("gpu", "memory", "native"): Prior(0.85, 0.12),
        Kind("gpu", "memory", "emulated"): Prior(0.8, 0.2),
        Kind("gpu", "memory", "kernel"): Prior(0.7, 0.3),
        Kind("cpu", "compute", "native"): Prior(0.75, 0.3),
        Kind("cpu", "compute", "emulated"): Prior(0.3, 1.0),
        Kind("cpu", "memory", "native"): Prior(0.7, 0.4),
        Kind("cpu", "memory", "emulated"): Prior(0.5, 0.6),
        Kind("cpu", "cache", "native"): Prior(0.6, 0.7),
        Kind("cpu", "cache", "emulated"): Prior(0.4, 0.9),
    }
)
CALL = Prior(1.0, 0.5)  # the cost of a call: within a factor of 2.3 of the assumed one


def prior_of(kind: Kind) -> Prior:
    """Return what is expected of a kind of case."""
    return PRIORS.get(kind, CALL)


_LIBRARY = ("family", "implementation", "dtype")
_KIND = Component(1.0, ("kind",), scaled_by="deviation")
_GPU_COMPUTE = (
    _KIND,
    Component(0.12, ("vendor",)),
    Component(0.06, ("architecture",)),
    Component(0.12, ("rate_class",)),
    Component(0.08, ("device",)),
    Component(0.04, ("dtype",)),
    Component(0.15, (), (("log2_watts_per_peak", 1.0),)),
    Component(0.15, ("family", "implementation")),
    Component(0.25, (), (("log2_flops", 6.0),)),
    Component(0.25, ("unit",)),
)
_OF_ITS_OWN: Mapping[str, tuple[Component, ...]] = MappingProxyType(
    {
        "narrow": (Component(1.0, ("rate_class",)),),
        "emulated": (Component(0.4, ("rate_class", "dtype")),),
    }
)
_GPU_OTHERWISE = (_KIND, Component(0.1, ("family", "implementation")), Component(0.1, ("device",)))
_CPU = (
    _KIND,
    Component(0.3, ("device",)),
    Component(1.0, ("implementation", "dtype")),
    Component(0.15, ("implementation", "bound")),
    Component(0.25, ("family", "bound")),
    Component(0.6, ("family",), (("log2_bytes", 4.5),)),
    Component(0.7, _LIBRARY),
    Component(0.3, _LIBRARY, (("log2_bytes", 3.5),)),
    Component(0.2, ("device", *_LIBRARY), (("log2_bytes", 0.5),)),
)


def partition(kind: Kind) -> str:
    """Return the name of the kinds that learn from each other: on a GPU each alone, on a CPU all of them."""
    return kind.place if kind.place == "cpu" else "/".join(kind)


def components_of(kind: Kind) -> tuple[Component, ...]:
    """Return why cases of this kind's partition are alike."""
    if kind.place == "cpu":
        return _CPU
    if kind.bound == "compute":
        return (*_GPU_COMPUTE, *_OF_ITS_OWN.get(kind.way, ()))
    return _GPU_OTHERWISE
