"""Parts of a page that look the same to all visitors: drawn for the first, sent to the others as they were drawn.

Drawing an element takes Streamlit a tenth of a millisecond and a chart one or two; sending what was drawn is ten times
as cheap. Where a version of Streamlit lacks what this rests on, every visitor's part is drawn.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import streamlit as st

from gpuexplore.ui.shared import Shared
from gpuexplore.ui.undocumented import place_of, record, send_again


@dataclass(slots=True)
class _Part:
    """What was sent when it was drawn; None before."""

    drawn: Sequence[Any] | None = None
    lock: Lock = field(default_factory=Lock)


PARTS: Shared[_Part] = Shared(60)


def draw_once(key: Hashable, draw: Callable[[], None]) -> None:
    """Show in a container what `draw` draws, which is drawn anew only where it was not drawn yet at this place.

    Whoever comes meanwhile waits; where the first visitor leaves before it is drawn, the next one draws it.

    Args:
        key: everything that what is drawn depends on.
        draw: draws no widgets, for each visitor has an own state of those.
    """
    container = st.container()
    place = place_of(container)
    if place is None:
        with container:
            draw()
        return
    part = PARTS.get((key, place), _Part)
    with part.lock:
        if part.drawn is None:
            with container:
                part.drawn = record(draw)
            return
    send_again(part.drawn)
