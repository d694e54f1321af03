"""What is expected of a case before anything like it was measured, and what makes cases alike: the model's choices.

Those of a GPU were chosen by hand from the physics: a card with few watts for its peak holds a lower clock; kernels of
one architecture are alike. A library's calls on a GPU are expected to be as fitted, each as sure as its estimate says:
what was measured on a device moves that device first. Those of a CPU are rounded from what makes an earlier recording
likeliest (the marginal likelihood), which is not the one that ships. `benchmarks/prediction.py` judges them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple

from gpuexplore.analysis.model import Bound
from gpuexplore.analysis.prediction.ideal_time import Processor
from gpuexplore.analysis.prediction.regression import Component

Execution = Literal["native", "narrow", "emulated", "unsupported", "kernel", "library"]


class Regime(NamedTuple):
    """Cases that are expected to reach the same fraction of their ideal.

    Attributes:
        bound: the largest term.
        execution: native or emulated; `narrow` for 16-bit formats on vector units, `kernel` for CUDA kernels of ours,
            `library` for a library's calls on a GPU's own units, whatever bounds them.
    """

    processor: Processor
    bound: Bound
    execution: Execution


@dataclass(frozen=True, slots=True)
class Prior:
    """What is expected of a kind of case before anything like it was seen.

    Attributes:
        efficiency: fraction of the ideal that is reached, 0 to 1.
        deviation: of its natural logarithm.
    """

    efficiency: float
    deviation: float


PRIORS: Mapping[Regime, Prior] = MappingProxyType(
    {
        Regime("gpu", "compute", "narrow"): Prior(0.5, 0.3),  # P100 well, GTX 16 hardly at all
        Regime("gpu", "compute", "emulated"): Prior(0.5, 0.3),
        Regime("gpu", "compute", "kernel"): Prior(0.25, 0.8),
        Regime("gpu", "memory", "emulated"): Prior(0.8, 0.2),
        Regime("gpu", "memory", "kernel"): Prior(0.7, 0.3),
        Regime("cpu", "compute", "native"): Prior(0.75, 0.3),
        Regime("cpu", "compute", "emulated"): Prior(0.3, 1.0),
        Regime("cpu", "memory", "native"): Prior(0.7, 0.4),
        Regime("cpu", "memory", "emulated"): Prior(0.5, 0.6),
        Regime("cpu", "cache", "native"): Prior(0.6, 0.7),
        Regime("cpu", "cache", "emulated"): Prior(0.4, 0.9),
    }
)
LIBRARY = Regime("gpu", "compute", "library")
CALL_PRIOR = Prior(1.0, 0.5)  # the cost of a call: within a factor of 2.3 of the assumed one


def prior_of(regime: Regime) -> Prior:
    """Return what is expected of a kind of case."""
    return PRIORS.get(regime, CALL_PRIOR)


_LIBRARY = ("family", "implementation", "dtype")
_REGIME = Component(1.0, ("regime",), scaled_by="deviation")
_GPU_COMPUTE = (
    _REGIME,
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
_GPU_OTHERWISE = (_REGIME, Component(0.1, ("family", "implementation")), Component(0.1, ("device",)))
_GPU_LIBRARY = (  # shares of the variance of each estimate
    Component(0.5, ("device", "author"), scaled_by="deviation"),
    Component(0.45, ("device", "author", "kernels", "dtype"), scaled_by="deviation"),
    Component(0.6, ("device", *_LIBRARY), (("log2_bytes", 3.0),), scaled_by="deviation"),
    Component(0.43, ("device", *_LIBRARY, "shape"), scaled_by="deviation"),
)
_CPU = (
    _REGIME,
    Component(0.3, ("device",)),
    Component(1.0, ("implementation", "dtype")),
    Component(0.15, ("implementation", "bound")),
    Component(0.25, ("family", "bound")),
    Component(0.6, ("family",), (("log2_bytes", 4.5),)),
    Component(0.7, _LIBRARY),
    Component(0.3, _LIBRARY, (("log2_bytes", 3.5),)),
    Component(0.2, ("device", *_LIBRARY), (("log2_bytes", 0.5),)),
)


def partition(regime: Regime) -> str:
    """Return the name of the regimes that learn from each other: on a GPU each alone, on a CPU all of them."""
    return regime.processor if regime.processor == "cpu" else "/".join(regime)


def components_of(regime: Regime) -> tuple[Component, ...]:
    """Return why cases of this regime's partition are alike."""
    if regime.processor == "cpu":
        return _CPU
    if regime == LIBRARY:
        return _GPU_LIBRARY
    if regime.bound == "compute":
        return (*_GPU_COMPUTE, *_OF_ITS_OWN.get(regime.execution, ()))
    return _GPU_OTHERWISE
