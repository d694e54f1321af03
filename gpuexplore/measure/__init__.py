"""The way from one case to one result: build, guard, check, warm up, sample in rounds, flag.

`runner.py` is the contract, read from its top: cases of one operation, shape and dtype are a group, each gets a round
of samples, then rounds go to the groups that need them. `candidates/` builds an implementation and names its
failures; `check/` makes inputs and references and compares outputs, before, between and after the samples; `sample/`
warms up, plans rounds and times them; `conditions/` watches the machine meanwhile; `arrays/` computes references
block by block; `flags.py` says what is doubtful about a result.

Passed on from step to step are a clock, an `Isolation` (from other threads and processes) and `ProgressHooks` (to the
supervisor). The order in which all of them, backends and checks are called is recorded in `tests/measure/trace.json`.

It imports operations, kernels, backends, devices and values, never the store, the queue or pages, and runs on a
machine without pandas, SQLAlchemy or Streamlit. How many rounds a case gets is decided in `sample/timing.py`; a check
against wrong kernels is added in `check/spot_checks.py`, with a plant in `tests/measure/evil`; a flag in `flags.py`.
"""

import os
import sys
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

import gpuexplore
from gpuexplore.core.pools import POOL_SETTINGS
from gpuexplore.hardware import cache_directory

KERNEL_CACHE_VARIABLE = "NUMBA_CACHE_DIR"

# CUDA would put the fastest GPU first; NVML, from which devices get their names and peaks, counts along the bus.
GPU_NUMBERING: Mapping[str, str] = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


def prepare_process() -> None:
    """Set the variables of a process that measures; those of pools come too late for NumPy, which this loads."""
    os.environ.update(process_settings())


def process_settings() -> Mapping[str, str]:
    """Return the variables of a process that measures: spinning of its pools, numbers of GPUs, compiled kernels.

    Where the environment has others they stay, but for the numbers of GPUs: `cuda:1` means one GPU everywhere.
    """
    wanted = {**POOL_SETTINGS, KERNEL_CACHE_VARIABLE: str(cache_directory() / "numba" / shared_kernel_code())}
    return {**{name: os.environ.get(name, value) for name, value in wanted.items()}, **GPU_NUMBERING}


def shared_kernel_code() -> str:
    """Return a fingerprint of the code that kernels of several files call.

    Numba compiles a kernel again when its own file has changed, and does not notice what it calls elsewhere.
    """
    files = sorted((Path(__file__).parents[1] / "kernels").glob("*.py"))  # in its folders is what other devices run
    return sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]


class _Callable(ModuleType):
    """This package: `gx.measure(function)` is a function of the Python API, and this has the same name."""

    def __call__(self, *arguments: Any, **settings: Any) -> Any:
        """Measure a function of a user, as the function of that name does."""
        return gpuexplore.__getattr__("measure")(*arguments, **settings)


sys.modules[__name__].__class__ = _Callable
