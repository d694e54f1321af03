"""Faults of a cluster: the scheduler goes, a node is killed, a node freezes. Nothing is lost but the case at work."""

import signal
from contextlib import ExitStack
from threading import Event, Thread

import pytest

from gpuexplore.core.model import Experiment, RunState, Shape, Status
from gpuexplore.features.cluster.dask.engine import DaskEngine
from gpuexplore.jobs.heartbeat import Heartbeat
from gpuexplore.jobs.queue_loop import serve
from gpuexplore.store import Supervisor, open_store
from tests.features.cluster.dask_cluster import Cluster
from tests.jobs.conftest import home
from tests.waiting import DEADLINE_S, wait_until

pytestmark = pytest.mark.faults
HEAD = Supervisor("head/1", host="head", scope="locks", pid=1, version="1")
LOST = "node was lost: killed, frozen or cut off while this case was measured"


class Lab:
    """A cluster with one node, a queue, and the supervisor that serves it."""

    def __init__(self, home, stack):
        self.cluster = Cluster(home)
        stack.callback(self.cluster.close)
        self.cluster.limits.write_text('{"build_s": 45}')
        self.node = self.cluster.start_node("node")
        self.store = stack.enter_context(open_store(f"sqlite:///{home}/queue.sqlite3"))
        self.heartbeat = Heartbeat(self.store, HEAD, ())
        engine = DaskEngine(self.cluster.address, self.heartbeat.replace_devices)
        stack.callback(engine.close)
        stop = Event()
        serving = Thread(target=serve, args=(self.store, engine, self.heartbeat), kwargs={"stop": stop})
        serving.start()
        stack.callback(serving.join)
        stack.callback(stop.set)

    def start(self, *implementations):
        experiment = Experiment("matmul", (Shape.of(n=1),), ("fp32",), implementations, ("node/fake",))
        return self.store.submit(experiment, "ada")

    def is_at_work_on(self, run_id, implementation):
        current = self.store.load_summary(run_id).progress.current
        return current is not None and current.implementation == implementation

    def state(self, run_id):
        return self.store.load_summary(run_id).state

    def results(self, run_id):
        return {result.case.implementation: result for result in self.store.load(run_id).results}

    def has_device(self):
        return bool(self.heartbeat.devices)


@pytest.fixture
def lab(tmp_path):
    with ExitStack() as stack:
        yield Lab(tmp_path, stack)


def results_after_recovery(lab, run_id):
    """Start a node again; return the results of the run, which goes on within two seconds."""
    wait_until(lambda: lab.state(run_id) is RunState.QUEUED, 1)
    lab.cluster.start_node("node")
    wait_until(lab.has_device)
    wait_until(lambda: lab.state(run_id) is not RunState.QUEUED, 2)
    wait_until(lambda: lab.state(run_id) is RunState.DONE)
    return [(name, result.status, result.reason) for name, result in lab.results(run_id).items()]


def is_lost(lab, run_id):
    return "hang" in lab.results(run_id)


ALL_BUT_THE_ONE_AT_WORK = [
    ("fine", Status.OK, None),
    ("hang", Status.CRASHED, LOST),
    ("fine-too", Status.OK, None),
]


def test_killed_node_costs_the_case_at_work_within_a_second_and_the_run_goes_on(lab):
    run_id = lab.start("fine", "hang", "fine-too")
    wait_until(lambda: lab.is_at_work_on(run_id, "hang"))

    lab.node.kill()
    wait_until(lambda: is_lost(lab, run_id), 1)

    assert results_after_recovery(lab, run_id) == ALL_BUT_THE_ONE_AT_WORK


def test_frozen_node_costs_the_case_at_work_within_35_seconds_and_does_no_harm_when_it_wakes(lab):
    run_id = lab.start("fine", "hang", "fine-too")
    wait_until(lambda: lab.is_at_work_on(run_id, "hang"))

    lab.node.send_signal(signal.SIGSTOP)
    wait_until(lambda: is_lost(lab, run_id), 35)
    lab.node.send_signal(signal.SIGCONT)
    lab.node.wait(DEADLINE_S)

    assert results_after_recovery(lab, run_id) == ALL_BUT_THE_ONE_AT_WORK


def test_run_survives_the_scheduler_and_goes_on_when_there_is_one_again(lab):
    run_id = lab.start("fine", "patient")
    wait_until(lambda: lab.is_at_work_on(run_id, "patient"))

    lab.cluster.scheduler.kill()
    wait_until(lambda: lab.state(run_id) is RunState.QUEUED, 2)
    lab.node.wait(DEADLINE_S)
    lab.cluster.start_scheduler()
    lab.cluster.start_node("node")
    wait_until(lab.has_device)
    wait_until(lambda: lab.is_at_work_on(run_id, "patient"), 2)
    lab.store.request_cancel(run_id, "ada")
    wait_until(lambda: lab.state(run_id) is RunState.CANCELLED, 2)

    assert lab.results(run_id)["fine"].status is Status.OK
