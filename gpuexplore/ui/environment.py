"""Environment variables of the server; docs/deployment.md lists them."""

import os
import socket

from streamlit import get_option

from gpuexplore.jobs.server_settings import (
    ALLOWED_HOSTS,
    FRAMED_BY,
    LEADER_KEY,
    SHORTEST_TOKEN,
    TRUSTED_PROXIES,
    listed,
)

ADMINS = "GPUEXPLORE_ADMINS"
LEADERS = "GPUEXPLORE_LEADERS"
MEMBERS = "GPUEXPLORE_MEMBERS"
# Set by Hugging Face: the name that a Space has, whose page shows it in a frame
# (https://huggingface.co/docs/hub/spaces-overview#helper-environment-variables)
SPACE_HOST = "SPACE_HOST"
ANY_HOST = "*"


def admins() -> frozenset[str]:
    """Return the names of the accounts that may change and cancel all runs, in small letters."""
    return frozenset(name.casefold() for name in listed(ADMINS))


def leaders() -> frozenset[str]:
    """Return the names of the accounts that see the instructor's view, in small letters."""
    return frozenset(name.casefold() for name in listed(LEADERS))


def members() -> tuple[str, ...]:
    """Return the accounts that may measure, in small letters, as patterns: `*@example.org`; none: every account may."""
    return tuple(name.casefold() for name in listed(MEMBERS))


def leader_key() -> str | None:
    """Return what a leader's link carries; None where there is none, or it could be guessed."""
    key = os.environ.get(LEADER_KEY, "").strip()
    return key if len(key) >= SHORTEST_TOKEN else None


def trusted_proxies() -> tuple[str, ...]:
    """Return the addresses and networks that are trusted on whom they forward; by default none."""
    return listed(TRUSTED_PROXIES)


def allowed_hosts() -> tuple[str, ...]:
    """Return the names this server answers to: those that were set, else this machine's and the configured address.

    A Space of Hugging Face answers to its own as well.
    """
    own = (
        "localhost",
        "127.0.0.1",
        "::1",
        socket.gethostname(),
        get_option("server.address"),
        get_option("browser.serverAddress"),
    )
    names = (*(listed(ALLOWED_HOSTS) or own), *listed(SPACE_HOST))
    return tuple(dict.fromkeys(name.casefold() for name in names if name))


def framed_by() -> tuple[str, ...]:
    """Return the origins whose pages may show the app in a frame; by default only its own may, and those of Spaces."""
    return (*listed(FRAMED_BY), *(("https://huggingface.co",) if listed(SPACE_HOST) else ()))
