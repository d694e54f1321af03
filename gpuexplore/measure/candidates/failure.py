"""From an exception to the status of a result: only here and in the worker."""

from gpuexplore.errors import Cancelled, GpuExploreError, TooLarge, TooSlow, Unsupported, WrongReturn, not_installed
from gpuexplore.model import Accuracy, Case, Environment, Result, Status
from gpuexplore.typed_text import LONGEST_REASON, readable


class IncorrectOutput(GpuExploreError):
    """The output is wrong, or not what the timed calls computed; the case is stored and shown, and never timed."""

    def __init__(self, reason: str, accuracy: Accuracy | None = None) -> None:
        super().__init__(reason)
        self.accuracy = accuracy


_STATUS: tuple[tuple[type[Exception], Status], ...] = (
    (Unsupported, Status.UNSUPPORTED),
    (ModuleNotFoundError, Status.UNSUPPORTED),
    (TooSlow, Status.SKIPPED),
    (TooLarge, Status.OUT_OF_MEMORY),
    (MemoryError, Status.OUT_OF_MEMORY),
    (Cancelled, Status.CANCELLED),
    (IncorrectOutput, Status.INCORRECT),
    (WrongReturn, Status.INCORRECT),
)


def failed(case: Case, error: Exception, environment: Environment | None = None) -> Result:
    """Return the result of a case that ended with `error`."""
    status = next((found for kind, found in _STATUS if isinstance(error, kind)), _status_by_name(error))
    reason = describe_error(error) if status is Status.ERROR else _words_of(error) or type(error).__name__
    accuracy = error.accuracy if isinstance(error, IncorrectOutput) else None
    return Result(case, status, reason, accuracy=accuracy, environment=environment)


def describe_error(error: Exception) -> str:
    """Return the type and the text of an unexpected error, as they can be stored and shown.

    Of an error that was raised on purpose it is the text alone, of a package that is missing how to install it.
    """
    words = _words_of(error)
    if isinstance(error, GpuExploreError | ModuleNotFoundError) and words:
        return words
    return f"{type(error).__name__}: {words or type(error).__name__}"


def _words_of(error: Exception) -> str:
    try:
        text = not_installed(error) if isinstance(error, ModuleNotFoundError) else str(error)
    except Exception:  # it cannot even tell what it is
        return ""
    return readable(text.strip(), LONGEST_REASON)


def _status_by_name(error: Exception) -> Status:
    """Recognise a library's own out-of-memory error by its text: its class must not be imported here."""
    message = f"{type(error).__name__} {_words_of(error)}".lower().replace("_", " ")
    return Status.OUT_OF_MEMORY if "outofmemory" in message or "out of memory" in message else Status.ERROR
