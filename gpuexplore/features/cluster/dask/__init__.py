"""Measures on the nodes of a Dask cluster: a way to carry groups to the local engine there, and its events back.

The queue stays in the database, and the scheduler gets one task per free device. Nothing connects to a node: tasks go
out and events come back on the connection that the node opened, so it may be behind NAT.
"""

from collections.abc import Callable
from importlib.util import find_spec

from gpuexplore.core import Device, InvalidInput
from gpuexplore.jobs.engines import Engine


def open_engine(scheduler: str, on_change: Callable[[tuple[Device, ...]], None]) -> Engine:
    """Return the engine of a cluster, whose nodes come and go, and warm up by themselves.

    Args:
        scheduler: its address.
        on_change: called with the devices of the cluster whenever they change.

    Raises:
        InvalidInput: the extra is not installed.
    """
    check_installed()
    from gpuexplore.features.cluster.dask.engine import DaskEngine

    return DaskEngine(scheduler, on_change)


def check_installed() -> None:
    """Return when Dask can be imported.

    Raises:
        InvalidInput: the extra is not installed.
    """
    if find_spec("distributed") is None:
        raise InvalidInput("a Dask cluster needs an extra: pip install 'gpuexplore[dask]'")
