"""What the tests of the jobs share: a home of their own and cases named after what they do."""

from contextlib import contextmanager, nullcontext
from dataclasses import replace

import pytest

from gpuexplore.core.model import Case, Device, Experiment, Shape
from gpuexplore.jobs.engines import WorkerLimits
from gpuexplore.jobs.engines.local import LocalEngine
from tests.waiting import DEADLINE_S

DEVICE = Device("fake", "fake", "a device for tests")


class LimitsOfHanging(WorkerLimits):
    """Limits of a case that hangs; others have all the time that a busy machine takes."""

    def of_case(self, case, expected_s):
        return super().of_case(case, expected_s) if "hang" in case.implementation else DEADLINE_S


LIMITS = LimitsOfHanging(start_s=DEADLINE_S, build_s=10, per_budget=0, grace_s=0.3)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch, quick_database):
    monkeypatch.setenv("GPUEXPLORE_HOME", str(tmp_path))
    monkeypatch.delenv("GPUEXPLORE_DATABASE_URL", raising=False)
    return tmp_path


@pytest.fixture
def experiment():
    return Experiment("matmul", (Shape.of(n=1), Shape.of(n=2)), ("fp32",), ("fine", "fine-too"), ("fake",))


@pytest.fixture
def cases_of():
    def named(*implementations, device="fake", operation="matmul"):
        return [Case(operation, Shape.of(n=1), "fp32", implementation, device) for implementation in implementations]

    return named


@contextmanager
def opened(device, **limits):
    """Open an engine whose workers run `fake_runner`."""
    engine = LocalEngine([device], runner="tests.jobs.fake_runner", limits=replace(LIMITS, **limits))
    try:
        yield engine
    finally:
        engine.close()


@pytest.fixture(scope="module")
def plain_engine():
    """Return an engine with the usual limits, for all tests that need no other: starting a worker takes a while."""
    with opened(DEVICE) as engine:
        yield engine


@pytest.fixture
def engine_with(plain_engine):
    """Return how to open an engine whose workers run `fake_runner`: a new one for another device or other limits."""

    def opened_or_plain(device=DEVICE, **limits):
        return opened(device, **limits) if limits or device is not DEVICE else nullcontext(plain_engine)

    return opened_or_plain
