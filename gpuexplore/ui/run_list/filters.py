"""Which runs a visitor wants to see: a search and filters, all of them in the URL."""

from dataclasses import dataclass

import streamlit as st

from gpuexplore.errors import InvalidInput
from gpuexplore.operations import OPERATIONS
from gpuexplore.store import Wanted
from gpuexplore.ui.session import owner, store
from gpuexplore.ui.shared import Shared, moment
from gpuexplore.ui.url_widgets import is_usable, operation_title, select, show_problem, toggle
from gpuexplore.units import read_whole

BEFORE = "before"  # the URL's parameter of the page of the list
TAGS: Shared[tuple[str, ...]] = Shared(1)
DEVICES: Shared[tuple[str, ...]] = Shared(1)
LOOKS = 10


@dataclass(frozen=True, slots=True)
class Asked:
    """What a visitor looks for.

    Attributes:
        wanted: which runs.
        before: the number of a run that the page begins below; None for the newest.
    """

    wanted: Wanted
    before: int | None

    @property
    def is_narrow(self) -> bool:
        """Whether anything but the newest of all runs is asked for."""
        return self.wanted != Wanted() or self.before is not None


def choose_runs() -> Asked:
    """Draw the search and the filters, and return what they ask for."""
    search, operation, device, tag, mine = st.columns([3.8, 2.3, 2.3, 1.8, 1.7], vertical_alignment="bottom")
    with search:
        typed = st.text_input(
            "Search",
            key="q",
            bind="query-params",
            live=True,
            placeholder="words of a title, tag, note, device or id",
            icon=":material/search:",
        )
    with operation:
        chosen = select("Operation", "op", ["", *OPERATIONS], shown=lambda name: operation_title(name) or "All")
    with device:
        names = DEVICES.get(moment(LOOKS), lambda: store().device_names())
        where = select("Device", "device", ["", *names], shown=lambda name: name or "All")
    with tag:
        tags = TAGS.get(moment(LOOKS), lambda: store().tags_in_use())
        tagged = select("Tag", "tag", ["", *tags], shown=lambda name: name or "All")
    with mine:
        own = toggle("Mine", "mine", help="Only what this browser, or this account, has measured")
    looked_for = typed if typed and is_usable("q", typed) else ""
    wanted = Wanted(owner() if own else None, chosen or None, where or None, tagged or None, looked_for)
    return Asked(wanted, _before(st.query_params.get(BEFORE)))


def _before(given: str | None) -> int | None:
    number = None if given is None else read_whole(given)
    if given is not None and number is None:
        show_problem(InvalidInput.of(BEFORE, given, "whole numbers from 1"))
    return number
