"""gpuexplore: how fast a computation is, how fast it should be, and why.

    import gpuexplore as gx
    run = gx.run("matmul", sizes=[512, 1024], dtypes=["fp32", "bf16"], implementations=["numpy", "torch"])
    run.to_pandas()
    gx.chart.time(run)

Importing this package loads nothing else: each name below is loaded when it is first used.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"
__all__ = ["__version__", "chart", "devices", "operations", "run", "specs"]

_PUBLIC = {
    "run": "gpuexplore.api",
    "devices": "gpuexplore.api",
    "operations": "gpuexplore.api",
    "specs": "gpuexplore.api",
}


def __getattr__(name: str) -> Any:
    if name == "chart":
        return import_module("gpuexplore.charts")
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'gpuexplore' has no attribute {name!r}: it offers {', '.join(__all__)}")
