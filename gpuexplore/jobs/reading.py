"""Files of strangers, read in a process of their own: what takes too much time or memory ends there, and alone.

`read_apart` starts ``python -m gpuexplore.jobs.reading``, which calls one function and hands back what it returns.
"""

import ctypes
import logging
import os
import pickle
import resource
import subprocess
import sys
from contextlib import suppress
from pkgutil import resolve_name
from tempfile import TemporaryFile
from threading import BoundedSemaphore
from typing import Any

from gpuexplore.core import GpuExploreError, InvalidInput, format_gigabytes

LOG = logging.getLogger(__name__)
MEMORY_BYTES = 3 * 2**30
CPU_S = 60
NICE = 5  # pages go first
_AT_ONCE = BoundedSemaphore(2)
_TOO_MUCH = f"reading this file takes more than {format_gigabytes(MEMORY_BYTES)} of memory, or too long"


def read_apart(function: str, *arguments: object, cpu_s: int = CPU_S) -> Any:
    """Return what a function returns for a file, called in a process with limits on time and memory.

    Args:
        function: its module and name, like ``gpuexplore.kernels.files:read_kernel_file``.
        arguments: of it, and what it returns: values that can be pickled.
        cpu_s: seconds of a core that it may take.

    Raises:
        GpuExploreError: as the function raises.
        InvalidInput: it took too much time or memory, or failed.
    """
    command = [sys.executable, "-P", "-m", "gpuexplore.jobs.reading"]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # each thread's buffers count as memory
    try:
        with _AT_ONCE, TemporaryFile() as given:
            pickle.dump((function, arguments, cpu_s), given)  # a file: what is large is copied nowhere in this process
            given.seek(0)
            done = subprocess.run(command, stdin=given, capture_output=True, timeout=180, env=environment, check=False)
    except subprocess.TimeoutExpired as error:
        raise InvalidInput(_TOO_MUCH) from error
    finally:
        with suppress(AttributeError, OSError):  # not glibc
            ctypes.CDLL(None).malloc_trim(0)  # of many large files the C library kept 150 MB
    if done.returncode < 0:
        raise InvalidInput(_TOO_MUCH)
    if done.returncode:
        LOG.error("Reading a file failed: %s", done.stderr.decode(errors="replace"))
        raise InvalidInput("this file cannot be read; the server's log has the cause")
    found = pickle.loads(done.stdout)
    if isinstance(found, GpuExploreError):
        raise found
    return found


def main() -> None:
    """Call the function on standard input, and write what it returned or raised to standard output."""
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    function, arguments, cpu_s = pickle.loads(sys.stdin.buffer.read())
    found: object
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    os.nice(NICE)
    try:
        found = resolve_name(function)(*arguments)
    except GpuExploreError as error:
        found = error
    except (MemoryError, RecursionError):
        found = InvalidInput(_TOO_MUCH)
    pickle.dump(found, output)
    output.close()


if __name__ == "__main__":
    main()
