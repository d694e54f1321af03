"""The identity of a visitor: an account of a login or a trusted proxy, else a browser by its cookie."""

import re
import secrets
from hashlib import sha256
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import streamlit as st

from gpuexplore.jobs.server_settings import TRUSTED_PROXIES, listed
from gpuexplore.store.database import ACCOUNT_PREFIX
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.undocumented import user_fields

OWNER_COOKIE = "gpuexplore_owner"
LONGEST_OWNER = 64  # characters of the column of owners
_COOKIE = re.compile(f"[ -9;-~]{{1,{LONGEST_OWNER}}}")  # printable ASCII but for the colon


def new_cookie() -> str:
    """Return an unguessable name for a browser."""
    return secrets.token_urlsafe(16)


def is_cookie(text: str) -> bool:
    """Return whether `text` can be a cookie of ours."""
    return _COOKIE.fullmatch(text) is not None


def owner() -> str:
    """Return by what name the visitor owns runs: the account, else the cookie, else one for this session only."""
    if name := account():
        return _owner_of_account(name)
    cookie = st.context.cookies.get(OWNER_COOKIE, "")
    if is_cookie(cookie):
        return cookie
    if "owner" not in st.session_state:
        st.session_state.owner = new_cookie()
    return str(st.session_state.owner)


def account() -> str | None:
    """Return the name of the account, in small letters; None for a visitor without one.

    What a trusted proxy says stands in the fields of `st.user` that the setting server.trustedUserHeaders names.
    """
    user = user_fields()
    fields = [*st.get_option("server.trustedUserHeaders").values()]
    if user.get("is_logged_in") and user.get("email_verified") is not False:
        fields.append("email")
    if user.get("is_logged_in"):
        fields.append("sub")
    return next(filter(None, (str(user.get(field) or "").strip().casefold() for field in fields)), None)


def _owner_of_account(name: str) -> str:
    """Return the owner that an account is; one that is too long or cannot be shown by its checksum."""
    named = f"{ACCOUNT_PREFIX}{name}"
    fits = len(named) <= LONGEST_OWNER and name.isprintable()
    return named if fits else f"{ACCOUNT_PREFIX}{sha256(name.encode(errors='surrogatepass')).hexdigest()[:32]}"


def address() -> str | None:
    """Return the network address the visitor comes from, of IPv6 the network that one host has for itself.

    None on this machine, where all have the same, and where a trusted proxy does not say whom it speaks for.
    """
    try:
        found = ip_address(st.context.ip_address or "")
    except ValueError:  # a proxy may forward words, RFC 7239, 6.3
        return None
    if any(_is_in(found, proxy) for proxy in listed(TRUSTED_PROXIES)):
        return None
    if isinstance(found, IPv4Address):
        return str(found)
    if found.ipv4_mapped:
        return str(found.ipv4_mapped)
    return str(ip_network((int(found), 64), strict=False))


def _is_in(found: IPv4Address | IPv6Address, network: str) -> bool:
    try:
        return found in ip_network(network, strict=False)
    except ValueError:  # a name, or `*`
        return False


def show_account() -> None:
    """Say in the sidebar who is logged in, and offer the way in or out where a login is configured."""
    name = account()
    if name:
        st.sidebar.caption(f":material/person: {plain(name)}")
    if "is_logged_in" in st.user:
        st.sidebar.button("Log out" if name else "Log in", on_click=st.logout if name else st.login)
