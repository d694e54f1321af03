"""What a plant is: an implementation that a measuring program must not be taken in by, and what has to become of it."""

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from types import MappingProxyType, ModuleType
from typing import Any

import gpuexplore.operations
from gpuexplore.core.model import Shape, Status
from gpuexplore.operations import OPERATIONS
from gpuexplore.operations.implementation import Implementation

ROUTES = ("cli", "queue")
SIZE = Shape.of(n=2**18)
QUICK_S, HANGING_S = 20.0, 45.0
BUILD_S = 6.0  # after which a plant counts as hanging
MISSING = "missing-module"


@dataclass(frozen=True, slots=True)
class Plant:
    """A builder as in a file of an operation's folder, and what is expected of who measures it.

    Attributes:
        build: its docstring says what the plant does.
        statuses: those it may end with; OK only where its output is right and its time its own.
        flag: which a result that is OK must carry.
        most_s: seconds after which it must have ended, over any route, its neighbours measured too.
        shape: what it is measured on.
        beside: the honest implementations it is measured with.
        damages: whether what it does may cost those their results: they are refused, and never wrong.
        routes: over which it is tried.
    """

    build: Callable[..., Callable[[], object]]
    statuses: tuple[Status, ...] = (Status.INCORRECT,)
    flag: str | None = None
    most_s: float = QUICK_S
    operation: str = "vector_add"
    shape: Shape = SIZE
    dtype: str = "fp32"
    beside: tuple[str, ...] = ("numpy",)
    damages: bool = False
    routes: tuple[str, ...] = ROUTES

    @property
    def name(self) -> str:
        """Return the name to ask for."""
        return self.build.__name__.replace("_", "-")

    @property
    def about(self) -> str:
        """Return what the plant does."""
        return (self.build.__doc__ or "").partition("\n")[0].rstrip(".")


def register(plants: Iterable[Plant], setattr_: Callable[..., Any], setitem: Callable[..., Any]) -> None:
    """Add plants, and one whose file does not exist, to the operations they are of.

    Args:
        plants: which.
        setattr_: `monkeypatch.setattr`, or the built-in where the process ends with the test.
        setitem: `monkeypatch.setitem`, or `dict.__setitem__`.
    """
    known = dict(OPERATIONS)
    for plant in plants:
        known[plant.operation] = _with(known[plant.operation], plant.name)
        module = ModuleType(f"gpuexplore.operations.{plant.operation}.{_module_of(plant.name)}")
        module.build = plant.build  # type: ignore[attr-defined]
        setitem(sys.modules, module.__name__, module)
    known["vector_add"] = _with(known["vector_add"], MISSING)
    setattr_(gpuexplore.operations, "OPERATIONS", MappingProxyType(known))


def _with(operation, name):
    added = Implementation(name, _module_of(name), "numpy", "vector", "a test")
    return replace(operation, implementations=(*operation.implementations, added))


def _module_of(name: str) -> str:
    return f"evil_{name.replace('-', '_')}"
