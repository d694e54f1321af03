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

from gpuexplore.pools import shorten_spinning
from gpuexplore.registry import features

__version__ = "0.2.0"
__all__ = [
    "__version__",
    "chart",
    "compare",
    "measure",
    "predict",
    "run",
    "runs",
    "specs",
]
_HOMES = {"operation": "gpuexplore.operations.declared"}
for _feature in features():
    _HOMES |= _feature.functions
__all__.extend(sorted(_HOMES))


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'gpuexplore' has no attribute {name!r}: it offers {', '.join(__all__)}")
    shorten_spinning()  # before NumPy is loaded, which the next line does
    import_module("gpuexplore.measure").prepare_process()
    if name == "chart":
        return import_module("gpuexplore.charts")
    return getattr(import_module(_HOMES.get(name, "gpuexplore.api")), name)


def load_ipython_extension(shell: Any) -> None:
    """Add the magic `%gpuexplore` to IPython, which calls this for `%load_ext gpuexplore`."""
    shorten_spinning()
    import_module("gpuexplore.notebook.magic").register(shell)
