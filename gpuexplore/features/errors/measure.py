"""Errors that people meet in torch, provoked on purpose in the process that measures: torch's words as they are today.

Each is bounded: what asks for memory asks for so much that it is refused at once. The texts load no torch.
"""

import tomllib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files
from textwrap import dedent

from gpuexplore.backends import Clock
from gpuexplore.backends.host import version_of
from gpuexplore.core import Cancelled, Device, check_known, encode, readable
from gpuexplore.measure.conditions.isolation import Isolation, ProgressHooks


@dataclass(frozen=True, slots=True)
class _CommonError:
    """An error or a warning that people meet: a row of `errors.toml`.

    Attributes:
        name: what links name.
        function: the one of `provocations`, next to this file, that runs into it.
        title: what happened, as one would say it.
        rows: of the notebooks in which it can be met.
        meaning: what torch's words mean.
        instead: what to do.
        instead_code: the same as code.
        otherwise: why it cannot be provoked on some machines; empty where it can on all.
    """

    name: str
    function: str
    title: str
    rows: tuple[str, ...]
    meaning: str
    instead: str
    instead_code: str
    otherwise: str = ""

    @property
    def code(self) -> str:
        """The source lines that provoke it, as they run."""
        text = (files(__package__) / "provocations.py").read_text(encoding="utf-8")
        return dedent(text.partition(f"def {self.function}(")[2].partition("\n\n\n")[0].split('"""\n', 1)[1]).strip()


@dataclass(frozen=True, slots=True)
class Provoked:
    """The result of provoking an error.

    Attributes:
        name: of the error.
        said: the warnings in their order, then what ended the call; empty where nothing happened. Of each its `kind`,
            `error` or `warning`, its `type`, which is the class, and torch's `message`.
        device: on which.
        torch: its version.
        reason: why nothing was said; None where something was.
    """

    name: str
    said: tuple[Mapping[str, str], ...]
    device: str
    torch: str
    reason: str | None = None


LONGEST_MESSAGE = 2000  # characters: some of CUDA's come with a manual


def _errors() -> Mapping[str, _CommonError]:
    table = tomllib.loads((files(__package__) / "errors.toml").read_text(encoding="utf-8"))
    return {row["name"]: _CommonError(**{**row, "rows": tuple(row["rows"])}) for row in table["error"]}


ERRORS = _errors()


def perform(
    arguments: Mapping[str, str],
    device: Device,
    *,
    clock: Clock,
    isolation: Isolation,
    progress: ProgressHooks,
) -> None:
    """Report what torch says to the error that `arguments` name, as an encoded `Provoked`.

    Args:
        arguments: `name` is that of the error.
        device: where it is provoked.
        clock: not used; nothing is timed.
        isolation: not used.
        progress: asked before whether it is cancelled; gets one report.

    Raises:
        InvalidInput: no such error.
        Cancelled: `cancelled` said so.
    """
    name = arguments.get("name", "")
    check_known("error", name, ERRORS)
    if progress.cancelled():
        raise Cancelled("cancelled before the error was reproduced")
    progress.report(encode(_provoked(ERRORS[name], device)))


def _provoked(error: _CommonError, device: Device) -> Provoked:
    """Return what torch says when `error` is provoked on `device`."""
    run: Callable[[str], None] = getattr(import_module("gpuexplore.features.errors.provocations"), error.function)
    said = _said(lambda: run(device.id))
    reason = None if said else error.otherwise or "torch raised no error and no warning"
    return Provoked(error.name, said, device.id, version_of("torch") or "unknown", reason)


def _said(run: Callable[[], None]) -> tuple[dict[str, str], ...]:
    """Return what was warned of, and what ended the call."""
    ended: tuple[dict[str, str], ...] = ()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            run()
        except Exception as error:
            ended = ({"kind": "error", "type": type(error).__name__, "message": readable(str(error), LONGEST_MESSAGE)},)
    warned = tuple(
        {
            "kind": "warning",
            "type": warning.category.__name__,
            "message": readable(str(warning.message), LONGEST_MESSAGE),
        }
        for warning in caught
    )
    return warned + ended
