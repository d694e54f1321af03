"""Which schedulers may be used: off this machine only by mutual TLS, for who reaches a scheduler runs code on nodes.

Certificates are settings of Dask's own, `distributed.comm.tls`: in a file of ~/.config/dask, or in the environment.
"""

import asyncio
from ipaddress import ip_address
from typing import Literal

from distributed import Security, rpc
from distributed.comm.addressing import get_address_host
from distributed.comm.core import CommClosedError

from gpuexplore.errors import GpuExploreError, InvalidInput

Role = Literal["client", "worker"]
ACCEPTED = "tls://HOST:PORT, and tcp://127.0.0.1:PORT on this machine"
CONNECT_S = 5.0


def security_for(scheduler: str, role: Role) -> Security:
    """Return the certificates to reach `scheduler` with.

    Raises:
        InvalidInput: `scheduler` is no address, or one that may not be used; or a certificate is not set.
    """
    encrypted = scheduler.startswith("tls://")
    try:
        host = get_address_host(scheduler)
    except ValueError as error:
        raise InvalidInput.of("scheduler", scheduler, ACCEPTED) from error
    if not encrypted and not (scheduler.startswith("tcp://") and _is_this_machine(host)):
        raise InvalidInput.of("scheduler", scheduler, ACCEPTED)
    security = Security(require_encryption=encrypted)
    missing = [name for name in _settings(role) if encrypted and not getattr(security, _settings(role)[name])]
    if missing:
        raise InvalidInput(f"{scheduler} needs certificates: {', '.join(missing)} of Dask's configuration not set")
    return security


def check_certificates(scheduler: str, role: Role) -> None:
    """Return when `scheduler` and this machine accept each other, or nobody answers there yet.

    Raises:
        GpuExploreError: their certificates are of different authorities.
    """
    security = security_for(scheduler, role)

    async def ask() -> None:
        async with rpc(scheduler, connection_args=security.get_connection_args(role), timeout=CONNECT_S) as remote:
            await remote.identity()

    try:
        asyncio.run(ask())
    except CommClosedError as error:
        raise GpuExploreError(f"{scheduler} was refused: {describe(error)}") from error
    except OSError:  # not there yet: whoever connects waits for it
        return


def describe(error: BaseException) -> str:
    """Return in one sentence why a scheduler could not be reached."""
    cause = error
    while earlier := cause.__cause__ or cause.__context__:
        cause = earlier
    if isinstance(error, CommClosedError):  # it answered, and one of the two hung up
        return f"are its certificate and this one of the same authority? ({cause})"
    return str(cause)


def _settings(role: Role) -> dict[str, str]:
    """Return the settings that TLS needs, each with the attribute of `Security` it becomes."""
    names = {f"distributed.comm.tls.{role}.{part}": f"tls_{role}_{part}" for part in ("cert", "key")}
    return {"distributed.comm.tls.ca-file": "tls_ca_file", **names}


def _is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
