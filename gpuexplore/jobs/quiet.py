"""Pages and measurements of one host alternate within milliseconds, for they share its cores.

A worker begins a round of samples when the web servers have done what they were at, and says until when the round
lasts; a web server begins to draw when no round is on. Either waits for a moment at most.
"""

import os
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from struct import Struct

from gpuexplore.core.errors import InvalidInput
from gpuexplore.jobs.locks import HostLock, first_free, lock_directory, open_shared

LOOK_S = 200e-6  # so long a server must do nothing, or nearly, before a round
PROCESSES = Path("/proc")
MIN_WAIT_S = 2e-3  # any round may wait so long for servers
MAX_WAIT_S = 0.25  # one round may wait so long at most, while the budget of its group lasts
WAIT_BUDGET_S = 0.4  # the rounds of a group may wait so long in all
WAIT_FRACTION = 0.1  # of the time of past rounds, which is added to the budget
PAGE_WAIT_S = 0.1  # a page waits so long for a round to end
_END = Struct("<d")
_SERVER = "pages-"


class Rounds:
    """The rounds of samples of this host, for the worker that takes them and for the servers that wait for their end.

    The file has the time when the round is to end, so that a worker that died delays no page. Workers of two
    devices write over each other: a page may wait a moment less.
    """

    def __init__(self) -> None:
        # Read and written, not mapped: of a mapped file what another user cuts off would end this process
        self._file = open_shared(lock_directory() / "round", os.O_RDWR | os.O_CREAT)
        weakref.finalize(self, os.close, self._file)
        self._budget_s = WAIT_BUDGET_S

    @cached_property
    def _servers(self) -> list[int]:
        """The processes that a worker waits for; a page does not ask."""
        return _servers()

    @contextmanager
    def undisturbed_by_pages(self, expected_s: float) -> Iterator[Callable[[], float]]:
        """Wait until the web servers of this host are idle; inside, they begin to draw nothing new.

        Args:
            expected_s: about how long the round takes, in seconds.

        Yields:
            What returns the CPU seconds that they used all the same.
        """
        asked_s = time.monotonic()
        _wait_for(self._servers, max(MIN_WAIT_S, min(MAX_WAIT_S, self._budget_s)))
        began_s = time.monotonic()
        before_s = self._cpu_s()
        self._write_end(began_s + expected_s)
        try:
            yield lambda: sum(after_s - before_s.get(server, after_s) for server, after_s in self._cpu_s().items())
        finally:
            self._write_end(0.0)
            self._budget_s += WAIT_FRACTION * (time.monotonic() - began_s) - (began_s - asked_s)

    def wait_for_end(self, limit_s: float = PAGE_WAIT_S) -> None:
        """Return when no round is on, or `limit_s` has passed."""
        end_s = time.monotonic() + limit_s
        while (left_s := min(self._end_s(), end_s) - time.monotonic()) > 0:
            time.sleep(min(left_s, 2e-3))

    def _cpu_s(self) -> dict[int, float]:
        """Return the CPU seconds so far of each server that lives."""
        found = {}
        for server in self._servers:
            with suppress(OSError):  # it has ended
                found[server] = _cpu_s(server)
        return found

    def _write_end(self, end_s: float) -> None:
        with suppress(OSError):  # a full disk: then pages are drawn meanwhile
            os.pwrite(self._file, _END.pack(end_s), 0)

    def _end_s(self) -> float:
        read = os.pread(self._file, _END.size, 0)
        return _END.unpack(read)[0] if len(read) == _END.size else 0.0


@contextmanager
def serving() -> Iterator[None]:
    """Inside, the worker of this host sees that this process serves pages."""
    with ExitStack() as held:
        with suppress(InvalidInput, OSError):  # then measurements do not wait for it
            held.enter_context(first_free(_SERVER, most=64))
        yield


def _cpu_s(server: int) -> float:
    """Return the CPU time of a process, https://man7.org/linux/man-pages/man3/clock_getcpuclockid.3.html.

    A thread that runs on does not move it before the next tick of the system, which is up to 10 ms later.
    """
    return time.clock_gettime(~server << 3 | 2)


def _is_at_work(server: int) -> bool:
    """Return whether one of its threads runs now, or would if it had a core."""
    return any(_runs(thread) for thread in (PROCESSES / str(server) / "task").iterdir())


def _runs(thread: Path) -> bool:
    try:
        return (thread / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "R"
    except OSError:  # it has ended
        return False


def _servers() -> list[int]:
    """Return the processes that serve pages and live."""
    if not PROCESSES.is_dir():
        return []
    holders = (HostLock(path.stem).holder() for path in lock_directory().glob(f"{_SERVER}*.lock"))
    return [holder.pid for holder in holders if holder]


def _wait_for(servers: Sequence[int], limit_s: float) -> None:
    """Return when none of them is at work, or `limit_s` has passed."""
    end_s = time.monotonic() + limit_s
    while servers and time.monotonic() < end_s:
        with suppress(OSError):  # one has ended meanwhile: the others are looked at again
            before_s = sum(_cpu_s(server) for server in servers)
            time.sleep(LOOK_S)
            used_s = sum(_cpu_s(server) for server in servers) - before_s
            if used_s < 0.3 * LOOK_S and not any(_is_at_work(server) for server in servers):
                return
