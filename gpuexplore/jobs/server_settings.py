"""Settings in a server's environment, judged once where it starts: one that has no effect is refused there."""

import os
import re
from ipaddress import ip_network

from gpuexplore.core.errors import InvalidInput, check_known

SUPERVISOR = "GPUEXPLORE_SUPERVISOR"
SCHEDULER = "GPUEXPLORE_SCHEDULER"
LEADER_KEY = "GPUEXPLORE_LEADER_KEY"
METRICS = "GPUEXPLORE_METRICS"
ALLOWED_HOSTS = "GPUEXPLORE_ALLOWED_HOSTS"
TRUSTED_PROXIES = "GPUEXPLORE_TRUSTED_PROXIES"
FRAMED_BY = "GPUEXPLORE_FRAMED_BY"
MODES = ("own", "external")
SHORTEST_TOKEN = 16  # characters: what is shorter can be guessed
ANY = "*"
# https://www.w3.org/TR/CSP3/#framework-directive-source-list, with its scheme
_ORIGIN = re.compile(r"https?://(\*\.)?([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(:([0-9]+|\*))?/?")
_SCHEDULER = re.compile(r"([a-z]+://)?([A-Za-z0-9._-]+|\[[0-9A-Fa-f:]+\]):[0-9]{1,5}")  # as Dask takes it


def check_settings() -> None:
    """Accept the settings that a web server starts with.

    Raises:
        InvalidInput: names the first that cannot be used, and what is accepted; a key or token is not repeated.
    """
    is_external()
    scheduler()
    _check_secret(LEADER_KEY, "")
    metrics()
    for name in listed(TRUSTED_PROXIES):
        if name != ANY and not _is_network(name):
            raise InvalidInput.of(TRUSTED_PROXIES, name, "addresses and networks, like 127.0.0.1 and 10.0.0.0/8")
    for name in listed(FRAMED_BY):
        if name != ANY and not _ORIGIN.fullmatch(name):
            raise InvalidInput.of(FRAMED_BY, name, "origins, like https://lab.example.org and https://*.example.org")


def is_external() -> bool:
    """Return whether another program, e.g. systemd, looks after the supervisor: GPUEXPLORE_SUPERVISOR=external.

    Raises:
        InvalidInput: the setting is unknown.
    """
    mode = os.environ.get(SUPERVISOR) or MODES[0]
    check_known(SUPERVISOR, mode, MODES)
    return mode == "external"


def scheduler() -> str | None:
    """Return the address of the Dask scheduler of a cluster to measure on; None: this machine is measured on.

    Raises:
        InvalidInput: it is no address.
    """
    address = os.environ.get(SCHEDULER, "").strip()
    if address and not _SCHEDULER.fullmatch(address):
        raise InvalidInput.of(SCHEDULER, address, "addresses of a Dask scheduler, like tls://head:8786")
    return address or None


def metrics() -> str | None:
    """Return the access to metrics: `on` is public, other text the token of a request; None: they are not served.

    Raises:
        InvalidInput: the token is too short.
    """
    asked = os.environ.get(METRICS, "").strip()
    if asked in ("", "off"):
        return None
    if asked != "on":
        _check_secret(METRICS, "off, on, and ")
    return asked


def listed(variable: str) -> tuple[str, ...]:
    """Return the values of a setting that holds several, separated by commas."""
    return tuple(name.strip() for name in os.environ.get(variable, "").split(",") if name.strip())


def _check_secret(variable: str, others: str) -> None:
    length = len(os.environ.get(variable, "").strip())
    if 0 < length < SHORTEST_TOKEN:
        what = f"a value of {length} character{'s' if length > 1 else ''}"
        raise InvalidInput(f"{variable}: {what}; expected {others}tokens of at least {SHORTEST_TOKEN} characters")


def _is_network(name: str) -> bool:
    try:
        ip_network(name)
    except ValueError:
        return False
    return True
