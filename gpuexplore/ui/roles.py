"""The rights of a visitor, decided here alone: by the account, which settings give a role, or by a leader's key.

Without an account every visitor is a member, unless a setting lists the members: then all others look on.
Who has the machine's terminal needs no role.
"""

import os
from enum import IntEnum, StrEnum
from fnmatch import fnmatchcase
from secrets import compare_digest

import streamlit as st

from gpuexplore.activity import ActivityRun
from gpuexplore.core import InvalidInput, Run
from gpuexplore.jobs.server_settings import LEADER_KEY, SHORTEST_TOKEN, listed
from gpuexplore.ui.identity import account, owner

ADMINS = "GPUEXPLORE_ADMINS"
LEADERS = "GPUEXPLORE_LEADERS"
MEMBERS = "GPUEXPLORE_MEMBERS"


class _Role(IntEnum):
    """Each may do what those before it may."""

    VIEWER = 0
    MEMBER = 1
    LEADER = 2
    ADMIN = 3


class Right(StrEnum):
    """Restricted actions."""

    MEASURE = "measure"
    KEEP = "save peaks and import runs"
    INSTRUCT = "see the instructor's view"
    MANAGE = "change and cancel other users' runs"


NEEDED = {
    Right.MEASURE: _Role.MEMBER,
    Right.KEEP: _Role.MEMBER,
    Right.INSTRUCT: _Role.LEADER,
    Right.MANAGE: _Role.ADMIN,
}
WHO = {
    _Role.MEMBER: f"members listed in {MEMBERS} on the server",
    _Role.LEADER: f"leaders: open the leader's link printed by gpuexplore app, or sign in as one of {LEADERS}",
    _Role.ADMIN: "administrators",
}
_SHOWED: dict[str, str] = {}  # the key that a visitor showed, by owner: a reload is a new session


def _role() -> _Role:
    """Return the visitor's role."""
    name = account()
    if name in _accounts(ADMINS):
        return _Role.ADMIN
    key = _leader_key()
    if name in _accounts(LEADERS) or (key is not None and _SHOWED.get(owner()) == key):
        return _Role.LEADER
    members = _accounts(MEMBERS)  # patterns, such as `*@example.org`; none: every account may measure
    if not members or (name is not None and any(fnmatchcase(name, pattern) for pattern in members)):
        return _Role.MEMBER
    return _Role.VIEWER


def _accounts(setting: str) -> tuple[str, ...]:
    """Return the names of accounts in a setting, in small letters."""
    return tuple(name.casefold() for name in listed(setting))


def _leader_key() -> str | None:
    """Return what a leader's link carries; None where there is none, or it could be guessed."""
    key = os.environ.get(LEADER_KEY, "").strip()
    return key if len(key) >= SHORTEST_TOKEN else None


def may(right: Right) -> bool:
    """Return whether the visitor has a right."""
    return _role() >= NEEDED[right]


def check(right: Right) -> None:
    """Return when the visitor has a right.

    Raises:
        InvalidInput: not so; says who has.
    """
    if not may(right):
        raise InvalidInput(f"You cannot {right}: that is for {WHO[NEEDED[right]]}")


def is_admin() -> bool:
    """Return whether the visitor may change and cancel what is others'."""
    return may(Right.MANAGE)


def may_cancel(run: Run | ActivityRun) -> bool:
    """Return whether the visitor may cancel `run`: its owner, or an administrator."""
    return run.owner == owner() or is_admin()


def show_key(key: str) -> None:
    """Take the visitor for a leader from now on, until the server ends.

    Raises:
        InvalidInput: it is not the leader's key of this server.
    """
    right = _leader_key()
    if right is None or not compare_digest(key.encode(errors="surrogatepass"), right.encode()):
        raise InvalidInput("this leader's link belongs to another server, or to an earlier start of this one")
    if len(_SHOWED) >= 1000:  # browsers
        _SHOWED.clear()
    _SHOWED[owner()] = right


def show_role() -> None:
    """Say in the sidebar what a visitor who only looks on cannot do."""
    if _role() is _Role.VIEWER:
        st.sidebar.caption(":material/visibility: You can see everything here. Only members can measure.")
