"""What a worker prints goes to the log, and no more of it than a log can take."""

import logging
import os
from collections import Counter
from collections.abc import Callable
from threading import Thread
from typing import IO

from gpuexplore.model import Case
from gpuexplore.typed_text import readable

LOG = logging.getLogger(__name__)
MAX_BYTES = 64_000  # of each case
PIPE_BYTES = 4096  # a small pipe: so much at most of one case's output can be taken for the next one's


class Output:
    """Reads a worker's output all its life, so that it never waits; drops what a case prints beyond `MAX_BYTES`."""

    def __init__(self, pipe: IO[bytes], worker: str) -> None:
        self._worker = worker
        self._printed_bytes: Counter[Case | None] = Counter()
        self._at_work: Callable[[], Case | None] = lambda: None
        Thread(target=self._read, args=(pipe,), name=f"output of {worker}", daemon=True).start()

    def attribute_to(self, at_work: Callable[[], Case | None]) -> None:
        """Count from now on what is printed as that of the case `at_work` returns."""
        self._at_work = at_work
        self._printed_bytes.clear()

    def was_cut(self, case: Case) -> bool:
        """Return whether `case` printed more than was kept."""
        return self._printed_bytes[case] > MAX_BYTES

    def _read(self, pipe: IO[bytes]) -> None:
        with pipe:
            while chunk := os.read(pipe.fileno(), PIPE_BYTES):
                self._keep(chunk, self._at_work())

    def _keep(self, chunk: bytes, case: Case | None) -> None:
        before = self._printed_bytes[case]
        self._printed_bytes[case] += len(chunk)
        if before > MAX_BYTES:
            return
        name = f"{case.implementation} on {self._worker}" if case else f"the worker of {self._worker}"
        LOG.warning("%s printed: %s", name, readable(chunk.decode(errors="replace")).rstrip())
        if before + len(chunk) > MAX_BYTES:
            LOG.warning("%s printed more than %d kB: the rest is dropped", name, MAX_BYTES // 1000)
