"""The whole way: `gpuexplore worker` and a supervisor with GPUEXPLORE_SCHEDULER, each a process as in a lab."""

import sys
from contextlib import closing

import pytest

from gpuexplore.core.model import Experiment, Options, RunState, Shape
from gpuexplore.features.cluster.worker_command import SETTINGS
from gpuexplore.hardware.discovery import VARIABLE
from gpuexplore.jobs.server_settings import SCHEDULER
from gpuexplore.jobs.supervisor import EXIT_UNUSABLE, main
from gpuexplore.store import open_store
from tests.features.cluster.dask_cluster import Cluster
from tests.jobs.conftest import home
from tests.waiting import wait_until

pytestmark = pytest.mark.long


@pytest.fixture
def lab(home):
    with closing(Cluster(home)) as cluster:
        worker = [sys.executable, "-m", "gpuexplore", "worker", cluster.address]
        cluster.start(worker, {**SETTINGS, VARIABLE: "1", "GPUEXPLORE_HOST": "lab2"})
        cluster.start([sys.executable, "-m", "gpuexplore.jobs.supervisor"], {SCHEDULER: cluster.address})
        yield cluster


def test_run_is_measured_on_the_device_of_another_host_and_says_that_it_is_simulated(lab):
    shape = Shape.of(m=8, k=8, n=8)
    experiment = Experiment("matmul", (shape,), ("fp32",), ("numpy",), ("lab2/simulated:0",), Options(budget_s=0.01))
    with open_store() as store:
        run_id = store.submit(experiment, "ada")
        wait_until(lambda: store.load_summary(run_id).state is RunState.DONE)
        (result,) = store.load(run_id).results
        (device,) = (device for device in store.supervisor().devices if device.is_simulated)

    assert result.case == experiment.cases()[0]
    assert [flag.name for flag in result.flags] == ["simulated"]
    assert result.environment.device.name == "Simulated device 0: nothing is measured"
    assert device.id == "lab2/simulated:0"


def test_supervisor_refuses_a_scheduler_that_may_not_be_used_with_a_sentence(home, monkeypatch, caplog):
    monkeypatch.setenv(SCHEDULER, "tcp://192.0.2.1:8786")

    assert main(["--once"]) == EXIT_UNUSABLE
    assert "scheduler 'tcp://192.0.2.1:8786': expected tls://HOST:PORT" in caplog.text
