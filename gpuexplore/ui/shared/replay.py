"""Parts of a page that all see alike: drawn by whoever comes first, sent to the others as they were drawn.

Drawing an element takes Streamlit a tenth of a millisecond and a chart one or two; sending what was drawn is ten times
as cheap. This rests on fields of Streamlit that are not public: tests hold what is sent to what is drawn.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from threading import Lock

import streamlit as st
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext

from gpuexplore.ui.shared import Shared


@dataclass(slots=True)
class _Part:
    """What was sent when it was drawn; None until somebody has."""

    drawn: Sequence[ForwardMsg] | None = None
    lock: Lock = field(default_factory=Lock)


PARTS: Shared[_Part] = Shared(60)


def draw_once(key: Hashable, draw: Callable[[], None]) -> None:
    """Show in a container what `draw` draws, which is drawn anew only where nobody has drawn it at this place.

    Whoever comes meanwhile waits; where the first visitor leaves before it is drawn, the next one draws it.

    Args:
        key: everything that what is drawn depends on.
        draw: draws no widgets, for each visitor has an own state of those.
    """
    container, context = st.container(), get_script_run_ctx()
    if context is None or container._cursor is None:  # nobody to send it to, or no place to send it again to
        with container:
            draw()
        return
    part = PARTS.get((key, context.page_script_hash, *container._cursor.delta_path), _Part)
    with part.lock:
        if part.drawn is None:
            with container:
                part.drawn = _recorded(draw, context)
            return
    for message in part.drawn:
        context.enqueue(message)


def _recorded(draw: Callable[[], None], context: ScriptRunContext) -> Sequence[ForwardMsg]:
    """Draw, and return what was sent: whole, for the next browser may not have what this one has."""
    drawn: list[ForwardMsg] = []
    send, cached = context._enqueue, context.cached_message_hashes

    def keep(message: ForwardMsg) -> None:
        drawn.append(message)
        send(message)

    context._enqueue, context.cached_message_hashes = keep, frozenset()
    try:
        draw()
    finally:
        context._enqueue, context.cached_message_hashes = send, cached
    return drawn
