"""A stand-in for `features.cluster.dask.node` in workers of Dask: its devices are fakes, and so is what they run."""

import json
import os
from dataclasses import replace
from pathlib import Path

import gpuexplore
from gpuexplore.features.cluster.dask.node import _join
from gpuexplore.jobs.engines.local import LocalEngine
from tests.jobs.conftest import DEVICE, LIMITS
from tests.jobs.engine_outcomes import GPU

DEVICES = (DEVICE, GPU)


class EngineForOneTest:
    """The local engine, a new one whenever a test asks for one by writing a file with its limits."""

    def __init__(self):
        self._asked, self._engine = "{}", _engine({})

    def warm(self, device):
        return self._engine.warm(device)

    def measure(self, cases, on_event, cancelled):
        self._engine_for_this_test().measure(cases, on_event, cancelled)

    def perform(self, activity, on_observation, cancelled):
        self._engine_for_this_test().perform(activity, on_observation, cancelled)

    def _engine_for_this_test(self):
        asked = Path(os.environ["LIMITS_FILE"]).read_text()
        if asked != self._asked:
            self._engine.close()
            self._asked, self._engine = asked, _engine(json.loads(asked))
        return self._engine

    def close(self):
        self._engine.close()


def dask_setup(worker):
    gpuexplore.__version__ = os.environ.get("OTHER_VERSION", gpuexplore.__version__)
    _join(worker, EngineForOneTest(), DEVICES)


def _engine(limits):
    known = {name: value for name, value in limits.items() if name != "test"}
    return LocalEngine(DEVICES, runner="tests.jobs.fake_runner", limits=replace(LIMITS, **known))
