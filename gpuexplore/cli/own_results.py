"""Earlier results of this machine, for commands that can do without them."""

from collections.abc import Sequence

from gpuexplore.cli.streams import say
from gpuexplore.core.errors import not_installed
from gpuexplore.core.model import Device, Result


def measured_here(devices: Sequence[Device]) -> tuple[Result, ...]:
    """Return the results of each device, newest first; none, and a line that says so, without the store's libraries.

    Raises:
        StoreUnavailable, InvalidInput: the database cannot be used.
    """
    try:
        from gpuexplore.store import open_store
    except ModuleNotFoundError as error:
        say(f"gpuexplore: what was measured here before is left out: {not_installed(error)}")
        return ()
    with open_store() as store:
        return tuple(result for device in devices for _, result in store.measured_results(device))
