"""What the tests of the store share: a database of their own and a clock that never repeats itself."""

from datetime import UTC, datetime, timedelta

import pytest

from gpuexplore.model import Experiment, Result, Shape, Status
from gpuexplore.store import open_store


class FakeClock:
    """Moves on by a millisecond whenever it is read."""

    def __init__(self):
        self.now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

    def __call__(self):
        self.now += timedelta(milliseconds=1)
        return self.now

    def advance(self, seconds):
        self.now += timedelta(seconds=seconds)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUEXPLORE_HOME", str(tmp_path))
    monkeypatch.delenv("GPUEXPLORE_DATABASE_URL", raising=False)
    return tmp_path


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def store(clock):
    with open_store(clock=clock) as opened:
        yield opened


@pytest.fixture
def experiment():
    return Experiment(
        "matmul", tuple(Shape.of(m=size, k=size, n=size) for size in (1, 2)), ("fp32",), ("numpy", "torch")
    )


@pytest.fixture
def failed():
    def result_of(case):
        return Result(case, Status.ERROR, f"no {case.implementation}")

    return result_of
