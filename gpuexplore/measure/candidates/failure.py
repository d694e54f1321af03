"""From an exception to the status of a result: only here and in the worker.

Kernels can break the CUDA context of their process: every later call there fails too, of any case. So the error belongs
to the case that met it first; the others are left to another process. CUDA says of these errors "the process must be
terminated and relaunched": https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html
"""

import re

from gpuexplore.core import (
    LONGEST_REASON,
    Cancelled,
    Case,
    Device,
    Environment,
    GpuExploreError,
    IncorrectOutput,
    Result,
    Status,
    TooLarge,
    TooSlow,
    Unsupported,
    not_installed,
    readable,
)
from gpuexplore.hardware import GPU_KINDS, is_lost

BREAKS_CONTEXT = re.compile(
    r"(?:[\[(]|\berror:? )(?:214|220|700|702|71\d|72[01]|999)\b"
    r"|illegal|misaligned|device-side assert|error ?assert|hardware ?stack|address ?space|program counter|invalid ?pc"
    r"|launch ?fail|launch ?timed? ?out|\bunknown error|uncorrectable",
    re.IGNORECASE,
)
_broken: dict[str, str] = {}  # by device: the cause of its broken context


def failed(case: Case, error: Exception, environment: Environment | None = None) -> Result:
    """Return the result of a case that ended with `error`."""
    statuses: dict[type[Exception] | tuple[type[Exception], ...], Status] = {
        (Unsupported, ModuleNotFoundError): Status.UNSUPPORTED,
        TooSlow: Status.SKIPPED,
        (TooLarge, MemoryError): Status.OUT_OF_MEMORY,
        Cancelled: Status.CANCELLED,
        IncorrectOutput: Status.INCORRECT,
    }
    message = f"{type(error).__name__} {_words_of(error)}".lower().replace("_", " ")
    status_by_name = Status.OUT_OF_MEMORY if "outofmemory" in message or "out of memory" in message else Status.ERROR
    status = next((found for kinds, found in statuses.items() if isinstance(error, kinds)), status_by_name)
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
    except Exception:  # it cannot even be printed
        return ""
    return readable(text.strip(), LONGEST_REASON)


# Contexts of CUDA that a kernel broke, and GPUs that the driver has lost.


def breaks_context(reason: str, device: Device) -> bool:
    """Return whether an error with this text leaves no usable context of `device` in its process."""
    return device.kind in GPU_KINDS and BREAKS_CONTEXT.search(reason.replace("_", " ")) is not None


def is_broken(device: Device) -> bool:
    """Return whether a case broke the context of `device` in this process."""
    return device.id in _broken


def check_context(device: Device) -> None:
    """Check that calls on `device` can succeed in this process.

    Raises:
        Cancelled: an earlier case broke the context, so this one is not measured.
        GpuExploreError: the driver cannot reach the GPU any more.
    """
    if reason := lost_reason(device):
        raise GpuExploreError(reason)
    if earlier := _broken_earlier(device):
        raise earlier


def cause_of(error: Exception, case: Case, device: Device) -> Exception:
    """Return why `case` failed: its own `error`, unless the context was broken before or the GPU is lost.

    Where it broke the context, that is kept.
    """
    if reason := lost_reason(device):
        return GpuExploreError(reason)
    if earlier := _broken_earlier(device):
        return earlier
    if breaks_context(describe_error(error), device):
        context = "CUDA context" if device.kind == "cuda" else f"context of {device.kind}"
        _broken[device.id] = f"{case.implementation} broke the {context} of this process"
    return error


def lost_reason(device: Device) -> str | None:
    """Return that the driver cannot reach `device` any more, or None."""
    if device.kind != "cuda" or not device.uuid or not is_lost(device.uuid):
        return None
    return (
        f"the driver has lost {device.id} ({device.name}): it fell off the bus or hangs, and does not respond "
        "until the machine is rebooted; see `nvidia-smi` and `dmesg` (Xid) for the cause"
    )


def _broken_earlier(device: Device) -> Cancelled | None:
    if not is_broken(device):
        return None
    return Cancelled(f"not measured: {_broken[device.id]}, so no later call on {device.id} can succeed")
