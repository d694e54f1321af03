"""What an error is that people meet in torch, and what torch said when it was provoked. Light: loads no torch."""

from dataclasses import dataclass
from importlib.resources import files
from textwrap import dedent
from typing import Literal


@dataclass(frozen=True, slots=True)
class CommonError:
    """An error or a warning that people meet.

    Attributes:
        name: what links name.
        module: the file in this folder whose `provoke` runs into it.
        title: what happened, as one would say it.
        rows: of the notebooks in which it can be met.
        meaning: what torch's words mean.
        instead: what to do.
        instead_code: the same as code.
        otherwise: why it cannot be provoked on some machines; empty where it can on all.
    """

    name: str
    module: str
    title: str
    rows: tuple[str, ...]
    meaning: str
    instead: str
    instead_code: str
    otherwise: str = ""

    @property
    def code(self) -> str:
        """What provokes it: the very lines that run."""
        text = (files("gpuexplore.features.errors.measure") / f"{self.module}.py").read_text(encoding="utf-8")
        body = text.partition("def provoke(")[2]
        return dedent(body.split('"""\n', 1)[1]).strip()


@dataclass(frozen=True, slots=True)
class Message:
    """One thing that torch said.

    Attributes:
        kind: an error ends the call, a warning does not.
        type: the class, e.g. `RuntimeError`.
        message: its words.
    """

    kind: Literal["error", "warning"]
    type: str
    message: str


@dataclass(frozen=True, slots=True)
class Provoked:
    """What came of provoking an error.

    Attributes:
        name: of the error.
        said: the warnings in their order, then what ended the call; empty where nothing happened.
        device: on which.
        torch: its version.
        reason: why nothing was said; None where something was.
    """

    name: str
    said: tuple[Message, ...]
    device: str
    torch: str
    reason: str | None = None
