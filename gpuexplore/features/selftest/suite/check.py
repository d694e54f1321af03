"""What a check is."""

from collections.abc import Callable
from dataclasses import dataclass

from gpuexplore.devices import GPU_KINDS
from gpuexplore.features.selftest.suite.bench import Bench
from gpuexplore.features.selftest.suite.contract import CheckFinding


@dataclass(frozen=True, slots=True)
class SelfCheck:
    """Something that has to hold.

    Attributes:
        name: for JSON and the documentation.
        title: for readers.
        run: finds out on a bench; whatever it raises is a failure.
        kinds: of devices it is for.
        needs_s: seconds below which it is not begun.
        share: of the whole time, which it may use at most.
        in_quick: whether it is part of the quick test.
    """

    name: str
    title: str
    run: Callable[[Bench], CheckFinding]
    kinds: tuple[str, ...] = ("cpu", *GPU_KINDS)
    needs_s: float = 5.0
    share: float = 0.2
    in_quick: bool = True
