"""gpuexplore: how fast a computation is, how fast it should be, and why.

    import gpuexplore as gx
    run = gx.run("matmul", sizes=[512, 1024], dtypes=["fp32", "bf16"], implementations=["numpy", "torch"])
    run.to_pandas()
    gx.chart.time(run)

In a notebook, `%load_ext gpuexplore` adds the magic `%gpuexplore`. Importing this package loads no
library: each name below is loaded when it is first used.
"""

from importlib import import_module
from typing import Any

from gpuexplore.core import once, shorten_spinning

__version__ = "0.2.0"
_CORE = dict.fromkeys(("compare", "predict", "run", "runs", "specs"), "gpuexplore.api")


@once
def _homes() -> dict[str, str]:
    """Return the module of each function, those of features among them."""
    features = import_module("gpuexplore.registry").features()
    return _CORE | {name: module for feature in features for name, module in feature.functions.items()}


def __dir__() -> list[str]:
    return sorted({"__version__", "chart", *_homes()})


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return __dir__()
    if name not in __dir__():
        raise AttributeError(f"module 'gpuexplore' has no attribute {name!r}: it offers {', '.join(__dir__())}")
    shorten_spinning()  # before NumPy is loaded, which the next line does
    import_module("gpuexplore.measure").prepare_process()
    return import_module("gpuexplore.charts") if name == "chart" else getattr(import_module(_homes()[name]), name)


def load_ipython_extension(shell: Any) -> None:
    """Add the magic `%gpuexplore` to IPython, which calls this for `%load_ext gpuexplore`."""
    shorten_spinning()
    import_module("gpuexplore.notebook").register(shell)
