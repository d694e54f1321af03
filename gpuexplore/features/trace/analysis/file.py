"""The file of a trace: Chrome's trace events as JSON, plain or packed by gzip, opened without trusting it."""

import json
import zlib
from gzip import BadGzipFile, GzipFile
from io import BytesIO
from typing import Any

from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.typed_text import check_characters

MOST_BYTES = 200_000_000  # unpacked
GZIP = b"\x1f\x8b"
LONGEST_NAME = 60  # characters of a file's name that are kept
SUFFIXES = (".json", ".gz")


def open_trace(name: str, content: bytes, most_bytes: int = MOST_BYTES) -> dict[str, Any]:
    """Return the object in a file, its events under `traceEvents`.

    Args:
        name: of the file, for messages; its first bytes say whether it is packed.
        content: of it.
        most_bytes: that it may have, unpacked.

    Raises:
        InvalidInput: it is too large, damaged, no JSON, or no trace; a sentence says which.
    """
    check_characters("file", name)
    short = name[:LONGEST_NAME]
    if not content:
        raise InvalidInput(f"{short}: the file is empty")
    text = _unpacked(short, content, most_bytes) if content.startswith(GZIP) else content
    if len(text) > most_bytes:
        more = f"; `gpuexplore trace FILE` takes {MOST_BYTES:,}" if most_bytes < MOST_BYTES else ""
        raise InvalidInput.of(f"trace {short}", "a larger one", f"at most {most_bytes:,} bytes unpacked{more}")
    return _as_trace(short, _parsed(short, text))


def _unpacked(name: str, content: bytes, most_bytes: int) -> bytes:
    """Return what gzip packed, never much more of it than is accepted: a few kB can unpack to gigabytes."""
    try:
        with GzipFile(fileobj=BytesIO(content)) as file:
            return file.read(most_bytes + 1)
    except (BadGzipFile, EOFError, zlib.error) as error:
        raise InvalidInput(f"{name}: begins as gzip, and cannot be unpacked: {error}") from error


def _parsed(name: str, text: bytes) -> Any:
    try:
        return json.loads(
            _decoded(name, text), parse_constant=_unknown, strict=False
        )  # names contain control characters
    except json.JSONDecodeError as error:
        is_cut = error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated string")
        hint = ", so it may have been cut off" if is_cut else ""
        raise InvalidInput(f"{name}: no JSON from line {error.lineno} on{hint}: {error.msg}") from error
    except RecursionError as error:
        raise InvalidInput(f"{name}: brackets are nested too deep to be a trace") from error
    except ValueError as error:  # a whole number of thousands of digits
        raise InvalidInput(f"{name}: a number that cannot be read: {error}") from error


def _decoded(name: str, text: bytes) -> str:
    """Return the text of a file; where it begins as JSON, bytes that are no UTF-8 are marked: names contain such."""
    is_json = text.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")
    try:
        return text.decode("utf-8-sig", "replace" if is_json else "strict")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{name}: this is no text in UTF-8: byte {error.start}") from error


def _unknown(_: str) -> None:
    """Return None for NaN and Infinity, which are no JSON: profilers write them for rates of what took no time."""


def _as_trace(name: str, found: Any) -> dict[str, Any]:
    trace = {"traceEvents": found} if isinstance(found, list) else found  # Chrome's format is either
    if not isinstance(trace, dict) or not isinstance(trace.get("traceEvents"), list):
        raise InvalidInput(f"{name}: JSON, but no trace: a trace is an object with a list called traceEvents")
    return trace
