"""The module that notebooks import `show_app` and its like from; a feature defines what it has."""

from importlib import import_module
from typing import Any

from gpuexplore.registry import features


def __getattr__(name: str) -> Any:
    homes = [feature.modules[__name__] for feature in features() if __name__ in feature.modules]
    if not homes:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}: no feature defines it")
    return getattr(import_module(homes[0]), name)
