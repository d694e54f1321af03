"""Sends what was measured here to a room of a server elsewhere: `gpuexplore run ... --room URL`.

A secret in the home directory, one for each room, makes a sender the same participant again.
"""

import json
import os
import secrets
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import parse_qs, quote, urlsplit
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
)

from gpuexplore.core.errors import InvalidInput
from gpuexplore.hardware.directories import data_directory
from gpuexplore.jobs.locks import user_name
from gpuexplore.rooms import LONGEST_NAME, read_code, read_name

MOST_ANSWER_BYTES = 100_000
FILE = "rooms.json"
FALLBACK_ADVICE = "or measure with --out run.json, and upload that file on the app's page Runs"


@dataclass(frozen=True, slots=True)
class _Destination:
    """A room, and as whom results are sent there.

    Attributes:
        app: the address of the app, without a page.
        code: of the room.
        name: by which the room is to know who sends; empty: as before.
        secret: of who sends.
    """

    app: str
    code: str
    name: str
    secret: str

    def join(self) -> str:
        """Join the room, unless that was done before, and return the name there.

        Raises:
            InvalidInput: the server cannot be reached, or refuses; says why.
        """
        return str(self._post(b"").get("name"))

    def send(self, report: Mapping[str, Any]) -> str:
        """Send an exported run, and return the address where it is shown.

        Raises:
            InvalidInput: as of `join`.
        """
        return f"{self.app}/benchmark?run={self._post(json.dumps(report).encode()).get('run')}"

    def _post(self, content: bytes) -> Mapping[str, Any]:
        url = f"{self.app}/api/room?room={self.code}&name={quote(self.name, safe='')}"
        headers = {"Authorization": f"Bearer {self.secret}", "Content-Type": "application/json"}
        try:
            with OPENER.open(Request(url, content, headers, method="POST"), timeout=30.0) as answer:
                return _answer(answer.read(MOST_ANSWER_BYTES))
        except HTTPError as refusal:
            reason = (
                _answer(refusal.read(MOST_ANSWER_BYTES)).get("reason")
                or f"HTTP status {refusal.code}: try later, {FALLBACK_ADVICE}"
            )
            raise InvalidInput(f"{self.app} rejected the request: {reason}") from refusal
        except (URLError, HTTPException, OSError) as error:
            raise InvalidInput(
                f"{self.app} cannot be reached ({getattr(error, 'reason', error)}), {FALLBACK_ADVICE}"
            ) from error


OPENER = OpenerDirector()
for kind in (ProxyHandler, HTTPHandler, HTTPSHandler, HTTPDefaultErrorHandler, HTTPErrorProcessor):
    OPENER.add_handler(kind())  # none follows redirects: the secret would be sent wherever they lead


def destination(address: str, name: str) -> _Destination:
    """Return the room that an address names, as a leader's page shows it: `https://host/?room=CODE`.

    Args:
        address: of the room.
        name: empty for the name of before or, the first time, what the operating system calls the user.

    Raises:
        InvalidInput: it is no such address, or the name cannot be one.
    """
    form = "addresses like https://host/?room=CODE"
    try:
        parts = urlsplit(address)
        (code,) = parse_qs(parts.query)["room"]
    except (KeyError, ValueError) as error:
        raise InvalidInput.of("--room", address, form) from error
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise InvalidInput.of("--room", address, form)
    path = parts.path.rstrip("/").removesuffix("/rooms")  # a link may name the page, and the API does not
    app = f"{parts.scheme}://{parts.netloc}{path}".rstrip("/")
    code = read_code(code)
    kept = _kept(data_directory() / FILE).get(f"{app}/?room={code}")
    if isinstance(kept, str):
        return _Destination(app, code, read_name(name) if name else "", kept)
    return _Destination(app, code, read_name(name) if name else _own_name(), secrets.token_urlsafe(24))


def keep(to: _Destination) -> None:
    """Keep the secret, now that the room knows it, where this user alone can read it."""
    path = data_directory() / FILE
    kept = {**_kept(path), f"{to.app}/?room={to.code}": to.secret}
    fresh = path.with_name(f"{FILE}.{os.getpid()}")
    fresh.touch(mode=0o600)
    fresh.write_text(json.dumps(kept, indent=1), encoding="utf-8")
    fresh.replace(path)


def _kept(path: Path) -> Mapping[str, Any]:
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise InvalidInput.of("file of rooms", path, f"a file written by gpuexplore ({error}): delete it") from error
    return kept if isinstance(kept, dict) else {}


def _own_name() -> str:
    """Return what the operating system calls the user, or else this machine."""
    for found in (user_name(), socket.gethostname(), "laptop"):
        with suppress(InvalidInput):
            return read_name(found[:LONGEST_NAME])
    raise InvalidInput.of("--name", "", "names with a letter or digit")


def _answer(content: bytes) -> Mapping[str, Any]:
    try:
        answer = json.loads(content)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}
