"""Every error gpuexplore raises on purpose.

GpuExploreError
├── InvalidInput        what was asked cannot be done: names the bad value and the accepted ones
├── Unsupported         this implementation cannot run this case here: becomes Status.UNSUPPORTED
├── IncorrectOutput     the output of a call is wrong, or is none: becomes Status.INCORRECT
├── TooLarge            memory is not enough: becomes Status.OUT_OF_MEMORY
├── TooSlow             the time budget is not enough: becomes Status.SKIPPED
├── Cancelled           the user asked to stop: becomes Status.CANCELLED
├── NotFound            no such run, device or accelerator
├── DeviceLost          the device's node is gone: what is left of a run waits for it in the queue
└── StoreUnavailable    the database cannot be used now: its text says why, and what helps
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuexplore.core.timed import Accuracy

CANCELLED_BY_OWNER = "cancelled by its owner"  # the reason a stopped run carries
CANCELLED_BY_ADMIN = "cancelled by an administrator"
CANCELLED = "the run was cancelled"  # the reason of each of its cases

# The extra that brings a module; the others come with gpuexplore.
EXTRAS: Mapping[str, Sequence[str]] = {
    "app": (
        "altair",
        "google",
        "pandas",
        "pyarrow",
        "segno",
        "starlette",
        "streamlit",
        "uvicorn",
        "vl_convert",
    ),
    "dask": ("dask", "distributed"),
    "postgresql": ("psycopg",),
    "torch": ("torch",),
}


class GpuExploreError(Exception):
    """Root of the tree; its text is fit to be shown to a user."""


class InvalidInput(GpuExploreError):
    """A value that cannot be used; the text names it and what would be accepted."""

    @classmethod
    def of(cls, what: str, value: object, accepted: Iterable[object] | str) -> "InvalidInput":
        """Return the error for one bad value, e.g. ``dtype 'fp8': expected fp64, fp32``."""
        listed = accepted if isinstance(accepted, str) else ", ".join(str(value) for value in accepted)
        return cls(f"{what} {_shown(value)!r}: expected {listed}")

    @classmethod
    def repeated(cls, what: str, values: Sequence[object]) -> "InvalidInput":
        """Return the error for repeated values; it names the first of them."""
        most = 12
        named = ", ".join(map(_shown, values[:most]))
        more = f" and {len(values) - most:,} more" if len(values) > most else ""
        return cls(f"{what} repeat: {named}{more}")


def require(holds: object, what: str, value: object, accepted: Iterable[object] | str) -> None:
    """Accept a value of which a condition holds.

    Raises:
        InvalidInput: it does not; names the value and what is accepted.
    """
    if not holds:
        raise InvalidInput.of(what, value, accepted)


def check_known(what: str, value: object, accepted: Collection[object]) -> None:
    """Accept a value that is among those accepted.

    Raises:
        InvalidInput: it is not; names it and them.
    """
    require(value in accepted, what, value, accepted)


def _shown(value: object) -> str:
    """Return the first 60 characters of a value."""
    try:
        return str(value)[:60]
    except (ValueError, RecursionError):  # a whole number of more digits than Python writes; a list within itself
        return f"a very large {type(value).__name__}"


class Unsupported(GpuExploreError):
    """This implementation cannot run this case on this device; the text says why."""


class IncorrectOutput(GpuExploreError):
    """The output is wrong, or not what the timed calls computed; the case is stored and shown, and never timed."""

    def __init__(self, reason: str, accuracy: "Accuracy | None" = None) -> None:
        super().__init__(reason)
        self.accuracy = accuracy


class TooLarge(GpuExploreError):
    """The case needs more memory than the device has; the text carries both figures."""


class TooSlow(GpuExploreError):
    """The case would take longer than its budget allows; the text carries the estimate."""


class Cancelled(GpuExploreError):
    """The user asked to stop while a case was being measured."""


class NotFound(GpuExploreError):
    """A run, device or accelerator that does not exist."""


class DeviceLost(GpuExploreError):
    """The node that has the device left while a run was measured; the text says which and how."""


class StoreUnavailable(GpuExploreError):
    """The database cannot be used now; the text is one sentence that says why and what helps."""


def not_installed(error: ImportError) -> str:
    """Return which package is missing, and how to install it."""
    module = (getattr(error, "name", None) or "").partition(".")[0]
    if not isinstance(error, ModuleNotFoundError) or module in ("", "gpuexplore"):
        return str(error)
    extra = next((extra for extra, modules in EXTRAS.items() if module in modules), None)
    distributions = {"pynvml": "nvidia-ml-py", "yaml": "PyYAML"}
    wanted = f"gpuexplore[{extra}]" if extra else distributions.get(module, module)
    return f"{module} is not installed: pip install '{wanted}'"
