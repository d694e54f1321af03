"""A bench whose worker answers what a test lays out."""

from contextlib import contextmanager

from gpuexplore.core.model import Result, Status
from tests.measure.fakes import GPU, environment, measurement


class FakeBench:
    """A device whose worker answers what a test lays out."""

    def __init__(self, *, device=GPU, libraries=("numba_cuda", "torch"), answers=None, results=None, is_quick=True):
        self.device, self.is_quick, self.unusable = device, is_quick, set()
        self.libraries = lambda: libraries
        self.answers, self.results = answers, results
        self.is_late = False

    def probe(self, name, **arguments):
        found = self.answers(**arguments)
        if isinstance(found, Exception):
            raise found
        return found

    def measure(self, cases):
        return tuple(result for case in cases if (result := self.results(case)))

    def left_s(self):
        return 0.0 if self.is_late else 60.0

    def is_over(self):
        return self.left_s() <= 0

    @contextmanager
    def hanging_after(self, seconds):
        yield

    def no_answer(self):
        return "out of time"


def ended(case, status=Status.OK, *, time_s=1e-3, reason="because"):
    if status is Status.OK:
        return Result(case, status, measurement=measurement(*(time_s,) * 10), environment=environment(GPU))
    return Result(case, status, reason)
