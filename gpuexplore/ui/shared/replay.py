"""Parts of a page that all see alike: drawn by whoever comes first, sent to the others as they were drawn.

Drawing an element takes Streamlit a tenth of a millisecond and a chart one or two; sending what was drawn is ten times
as cheap. This rests on two fields of a script's context that are not public: tests hold what is sent to what is drawn.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from threading import Lock

import streamlit as st
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext

MOST_PARTS = 60
_DRAWN: OrderedDict[Hashable, Sequence[ForwardMsg]] = OrderedDict()
_LOCK = Lock()


def draw_once(key: Hashable, draw: Callable[[], None]) -> None:
    """Show in a container what `draw` draws, which is drawn anew only where nobody has drawn it at this place.

    Args:
        key: everything that what is drawn depends on.
        draw: draws no widgets, for each visitor has an own state of those.
    """
    container, context = st.container(), get_script_run_ctx()
    if context is None or container._cursor is None:
        return
    place = (key, context.page_script_hash, *container._cursor.delta_path)
    if (drawn := _known(place)) is not None:
        for message in drawn:
            context.enqueue(message)
        return
    with container:
        _remember(place, _recorded(draw, context))


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


def _known(place: Hashable) -> Sequence[ForwardMsg] | None:
    with _LOCK:
        found = _DRAWN.get(place)
        if found is not None:
            _DRAWN.move_to_end(place)
        return found


def _remember(place: Hashable, drawn: Sequence[ForwardMsg]) -> None:
    with _LOCK:
        _DRAWN[place] = drawn
        if len(_DRAWN) > MOST_PARTS:
            _DRAWN.popitem(last=False)
