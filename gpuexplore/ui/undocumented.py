"""Undocumented parts of Streamlit: each function has the plain way where a version lacks them.

`tests/ui/test_undocumented.py` serves every page with a Streamlit that hides them, and checks that nothing else of the
package reaches past Streamlit's documentation.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

MOVED = (ImportError, AttributeError)


def _script_context() -> Any | None:
    """Return the context of the script that runs in this thread, None outside one."""
    with suppress(*MOVED):
        return import_module("streamlit.runtime.scriptrunner").get_script_run_ctx()
    return None


def is_fragment_rerun() -> bool:
    """Return whether a fragment is drawn by itself, and not with its whole page; False where that is unknown."""
    return bool(getattr(_script_context(), "fragment_ids_this_run", None))


def session_id() -> str:
    """Return the identifier of this page's session, empty outside one."""
    return str(getattr(_script_context(), "session_id", ""))


def user_fields() -> Mapping[str, object]:
    """Return the fields of `st.user`, which itself looks for a file of secrets at every access."""
    context = _script_context()
    if context is None:
        return {}
    found = getattr(context, "user_info", None)
    return st.user.to_dict() if found is None else found


def connected_sessions() -> int | None:
    """Return how many pages are connected; None where no server runs, or it does not say."""
    with suppress(*MOVED):
        runtime = import_module("streamlit.runtime").Runtime
        stats = import_module("streamlit.runtime.stats")
        if runtime.exists():
            family = stats.ACTIVE_SESSIONS_FAMILY
            found = runtime.instance().stats_mgr.get_stats([family]).get(family, ())
            return int(sum(stat.value for stat in found if isinstance(stat, stats.GaugeStat)))
    return None


def keeps_upload(session: str, file: str) -> bool:
    """Return whether Streamlit still has a file that a page sent; True where that is unknown."""
    with suppress(*MOVED):
        runtime = import_module("streamlit.runtime").Runtime
        return not runtime.exists() or bool(runtime.instance().uploaded_file_mgr.get_files(session, [file]))
    return True


def is_client_message(frame: bytes) -> bool:
    """Return whether a websocket's frame is a message of Streamlit's browser client; True where that is unknown."""
    with suppress(*MOVED):
        from google.protobuf.message import DecodeError

        message = import_module("streamlit.proto.BackMsg_pb2").BackMsg
        try:
            return message.FromString(frame).WhichOneof("type") is not None
        except DecodeError:
            return False
    return True


def was_set(option: str, *, default: str) -> bool:
    """Return whether an option of the server was set; where that is unknown, whether it differs from its default."""
    with suppress(*MOVED):
        return bool(import_module("streamlit.config").is_manually_set(option))
    return bool(st.get_option(option) != default)


def remember_theme() -> None:
    """Let every session send the theme that was made for the first: it never changes while the server runs.

    Streamlit reads some three hundred options for it at every rerun of every session, on the loop that sends to all:
    with a hundred pages that redraw themselves, a quarter of the server's work.
    """
    with suppress(*MOVED):
        session: Any = import_module("streamlit.runtime.app_session")
        message_type = import_module("streamlit.proto.NewSession_pb2").CustomThemeConfig
        populate = session._populate_theme_msg

        @cache
        def made(section: str) -> Any:
            message = message_type()
            populate(message, section)
            return message

        def merge(msg: Any, section: str = "theme") -> None:
            if made(section).ByteSize():  # to merge an empty one would still say that the section is there
                msg.MergeFrom(made(section))

        session._populate_theme_msg = merge


def delta_path_of(container: DeltaGenerator) -> Hashable | None:
    """Return where on which page a container is, None where messages for it cannot be recorded and sent again."""
    context = _script_context()
    path = getattr(getattr(container, "_cursor", None), "delta_path", None)
    recorded_by = ("_enqueue", "enqueue", "cached_message_hashes", "page_script_hash")
    if path is None or not all(hasattr(context, name) for name in recorded_by):
        return None
    return (context.page_script_hash, *path)  # type: ignore[union-attr]


def record(draw: Callable[[], None]) -> Sequence[Any]:
    """Draw, and return what was sent: whole, for the next browser may not have what this one has."""
    context: Any = _script_context()
    messages: list[Any] = []
    send = context._enqueue
    cached = context.cached_message_hashes

    def keep(message: Any) -> None:
        messages.append(message)
        send(message)

    context._enqueue = keep
    context.cached_message_hashes = frozenset()
    try:
        draw()
    finally:
        context._enqueue = send
        context.cached_message_hashes = cached
    return messages


def send_again(messages: Sequence[Any]) -> None:
    """Send to this session's browser what `record` returned in another one."""
    context: Any = _script_context()
    for message in messages:
        context.enqueue(message)
