"""Ends a run whose cases crash one after the other: what is wrong there is not the next case."""

from collections.abc import Callable

from gpuexplore.errors import GpuExploreError
from gpuexplore.model import Case, Result, Status

MAX_CRASHES = 3


class CrashLimit:
    """Passes on what an engine reports on one run, and raises out of `Engine.measure` at the third crash in a row.

    Args:
        on_event: gets every event first, so that the results are kept, the last crash's too.
    """

    def __init__(self, on_event: Callable[[Case | Result], None]) -> None:
        self._on_event = on_event
        self._crashed: list[Case] = []
        self._passed: set[Case] = set()

    def __call__(self, event: Case | Result) -> None:
        """Pass on `event`.

        Raises:
            GpuExploreError: it is the third crash in a row; the text names the three cases.
        """
        self._on_event(event)
        if isinstance(event, Result) and event.status is Status.CRASHED:
            self._crashed.append(event.case)
        elif isinstance(event, Result) and not (event.provisional and event.case in self._passed):
            self._crashed = []  # what is measured again after a crash tells nothing new
            self._passed.add(event.case)
        if len(self._crashed) == MAX_CRASHES:
            raise GpuExploreError(f"{MAX_CRASHES} crashes in a row: {'; '.join(map(_name, self._crashed))}")


def _name(case: Case) -> str:
    return f"{case.operation} {case.implementation} {case.dtype} {case.shape} on {case.device}"
