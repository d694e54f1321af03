"""The engine `dask` on a real scheduler and real nodes, one of them at an address nobody can reach."""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from threading import Event

import dask
import pytest
import trustme

from gpuexplore.core.errors import DeviceLost, InvalidInput
from gpuexplore.core.model import Device, Result, Status
from gpuexplore.features.cluster.dask.cluster import _security_for
from gpuexplore.features.cluster.dask.engine import DaskEngine
from gpuexplore.features.cluster.dask.node import TOPIC
from tests.features.cluster.dask_cluster import Cluster, in_environment
from tests.jobs.conftest import DEVICE, home
from tests.jobs.conftest import cases_of as local_cases_of
from tests.jobs.engine_outcomes import *  # noqa: F403 - pytest finds them here
from tests.jobs.engine_outcomes import measured
from tests.waiting import DEADLINE_S, wait_until

pytestmark = pytest.mark.long
TOGETHER_S = 0.5  # in which one that does not wait would have begun


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with closing(Cluster(tmp_path_factory.mktemp("cluster"))) as cluster:
        cluster.start_hidden_node("hidden")
        cluster.start_node("near", GPUEXPLORE_LOCKS=str(cluster.home / "locks"))  # which another host has of its own
        yield cluster


@pytest.fixture(scope="module")
def plain_engine(cluster):
    """Return an engine whose nodes have the usual limits, for all tests that need no other."""
    with cluster.second_engine("hidden/fake") as engine:
        yield engine


@pytest.fixture
def engine_with(cluster, plain_engine):
    """Return how to open an engine whose nodes run `fake_runner`."""

    @contextmanager
    def opened(device=DEVICE, **limits):
        if limits or device is not DEVICE:
            with cluster.engine(f"hidden/{device.id}", **limits) as engine:
                yield engine
        else:
            cluster.limits.write_text("{}")
            yield plain_engine

    return opened


@pytest.fixture
def cases_of(local_cases_of):
    def named(*implementations, device="fake", **others):
        return local_cases_of(*implementations, device=f"hidden/{device}", **others)

    return named


def on(host, cases):
    return [replace(case, device=f"{host}/fake") for case in cases]


class Lasting:
    """A measurement that lasts until it is told to end, in a thread."""

    def __init__(self, threads, engine, cases):
        self.at_work, self.end, self.events = Event(), Event(), []
        self.future = threads.submit(engine.measure, cases, self.take, self.end.is_set)

    def take(self, event):
        self.events.append(event)
        self.at_work.set()

    @property
    def results(self):
        return [event for event in self.events if isinstance(event, Result)]


def test_devices_of_two_hosts_are_measured_side_by_side(cluster, cases_of):
    with cluster.engine("hidden/fake") as engine, ThreadPoolExecutor(2) as threads:
        wait_until(lambda: "near/fake" in engine._cluster.devices())
        runs = [Lasting(threads, engine, on(host, cases_of("patient"))) for host in ("hidden", "near")]

        both = [run.at_work.wait(DEADLINE_S) for run in runs]
        for run in runs:
            run.end.set()

    assert both == [True, True]
    assert [run.results[0].case.device for run in runs] == ["hidden/fake", "near/fake"]


def test_first_event_comes_within_a_tenth_of_a_second_or_as_soon_as_a_busy_machine_can(engine_with, cases_of):
    with engine_with() as engine:
        measured(engine, cases_of("fine"))
        waits_s = [until_first_event_s(engine, cases_of("fine")) for _ in range(5)]
        trips_s = [round_trip_s(engine._cluster.client) for _ in range(5)]

    assert min(waits_s) < 0.1 + 20 * min(trips_s)


def round_trip_s(client):
    start_s = time.monotonic()
    client.run_on_scheduler(int)
    return time.monotonic() - start_s


def until_first_event_s(engine, cases):
    times_s, start_s = [], time.monotonic()
    engine.measure(cases, lambda event: times_s.append(time.monotonic()), lambda: False)
    return times_s[0] - start_s


@contextmanager
def two_engines(cluster):
    with cluster.engine("hidden/fake") as engine, cluster.second_engine("hidden/fake") as other:
        yield engine, other


def test_two_supervisors_measure_on_one_device_in_turns(cluster, cases_of):
    with two_engines(cluster) as (engine, other), ThreadPoolExecutor(2) as threads:
        first = Lasting(threads, engine, cases_of("patient"))
        assert first.at_work.wait(DEADLINE_S)
        second = Lasting(threads, other, cases_of("fine"))
        at_work_together = second.at_work.wait(TOGETHER_S)
        first.end.set()

    assert not at_work_together
    assert second.results[0].status is Status.OK


def test_run_that_waits_behind_that_of_another_supervisor_is_cancelled_at_once(cluster, cases_of):
    with two_engines(cluster) as (engine, other), ThreadPoolExecutor(1) as threads:
        first = Lasting(threads, engine, cases_of("patient"))
        assert first.at_work.wait(DEADLINE_S)

        result = measured(other, cases_of("fine"), cancelled=lambda: True)["fine"]

        assert not first.results
        first.end.set()

    assert (result.status, result.reason) == (Status.CANCELLED, "the run was cancelled")


def test_measurement_of_a_supervisor_that_was_killed_ends(cluster, cases_of):
    script = f"""
from gpuexplore.features.cluster.dask.engine import DaskEngine
from gpuexplore.core.model import Case, Shape
from tests.waiting import wait_until
engine = DaskEngine("{cluster.address}")
wait_until(lambda: "hidden/fake" in engine._cluster.devices())
case = Case("matmul", Shape.of(n=1), "fp32", "patient", "hidden/fake")
engine.measure([case], lambda event: print(event, flush=True), lambda: False)
"""
    with cluster.engine("hidden/fake") as engine:
        with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as supervisor:
            supervisor.stdout.readline()
            supervisor.kill()
        with ThreadPoolExecutor(1) as threads:
            after = Lasting(threads, engine, cases_of("fine"))
            assert after.at_work.wait(DEADLINE_S)

    assert after.results[0].status is Status.OK


def test_device_that_no_node_has_is_unsupported(engine_with, cases_of):
    with engine_with() as engine:
        result = measured(engine, on("elsewhere", cases_of("fine")))["fine"]
        with pytest.raises(InvalidInput, match=r"device 'elsewhere/fake': expected .*hidden/fake"):
            engine.warm(Device("elsewhere/fake", "fake", "absent"))

    assert result.status is Status.UNSUPPORTED
    assert result.reason.startswith("device 'elsewhere/fake': expected ")


def test_node_announces_its_devices_with_what_was_measured_on_them(engine_with):
    with engine_with() as engine:
        assert engine.warm(Device("hidden/fake", "fake", "x")) == replace(DEVICE, id="hidden/fake")


def test_node_of_another_version_is_refused_by_name(cluster, cases_of):
    old = cluster.start_node("old", OTHER_VERSION="0.0.1")
    with cluster.engine("hidden/fake") as engine:
        wait_until(lambda: any(node.host == "old" for node in engine._cluster._nodes.values()))
        result = measured(engine, on("old", cases_of("fine")))["fine"]

        assert "old/fake" not in engine._cluster.devices()
    old.kill()

    assert result.status is Status.UNSUPPORTED
    assert result.reason.startswith("old has gpuexplore 0.0.1, not ")


GARBAGE = ({"worker": "a"}, {"worker": "a", "host": "b", "version": 1, "devices": [{"id": "c"}]}, "hello", None)


def test_announcements_that_cannot_be_read_are_logged_and_change_nothing(cluster, cases_of, caplog):
    with cluster.engine("hidden/fake") as engine:
        for garbage in GARBAGE:
            engine._cluster.client.log_event(TOPIC, garbage)
        wait_until(lambda: sum("cannot be read" in message for message in caplog.messages) >= len(GARBAGE))
    with cluster.engine("hidden/fake") as engine:
        assert measured(engine, cases_of("fine"))["fine"].status is Status.OK


def test_node_that_is_told_to_leave_gives_its_group_back_and_blames_no_case(cluster, cases_of):
    leaving = cluster.start_node("leaving")
    with cluster.engine("leaving/fake") as engine, ThreadPoolExecutor(1) as threads:
        run = Lasting(threads, engine, on("leaving", cases_of("patient")))
        assert run.at_work.wait(DEADLINE_S)
        leaving.terminate()

        with pytest.raises(DeviceLost, match="leaving left the cluster"):
            run.future.result(DEADLINE_S)
        assert not run.results
        with pytest.raises(DeviceLost, match="leaving/fake is not in the cluster now"):
            engine.measure(on("leaving", cases_of("fine")), run.take, lambda: False)
    assert leaving.wait(DEADLINE_S) is not None


@pytest.mark.parametrize(
    "address", ["tcp://192.0.2.1:8786", "tcp://lab.example:8786", "nonsense", "http://127.0.0.1:8786", "tls://", ""]
)
def test_scheduler_that_may_not_be_used_is_refused_with_the_accepted_forms(address):
    with pytest.raises(InvalidInput, match=r"expected tls://HOST:PORT, and tcp://127.0.0.1:PORT on this machine"):
        _security_for(address, "client")


def test_tls_without_certificates_is_refused_with_the_settings_to_make():
    with pytest.raises(InvalidInput, match=r"needs certificates: set distributed.comm.tls.ca-file, .*client.cert, "):
        _security_for("tls://192.0.2.1:8786", "client")


def authority(directory, name):
    """Make an authority, a certificate of it, and return Dask's settings for both."""
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    paths = {part: str(directory / f"{name}-{part}.pem") for part in ("ca", "cert", "key")}
    authority.cert_pem.write_to_path(paths["ca"])
    issued.cert_chain_pems[0].write_to_path(paths["cert"])
    issued.private_key_pem.write_to_path(paths["key"])
    files = {f"{role}.{part}": paths[part] for role in ("client", "worker", "scheduler") for part in ("cert", "key")}
    return {f"distributed.comm.tls.{setting}": path for setting, path in {"ca-file": paths["ca"], **files}.items()}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    directory = tmp_path_factory.mktemp("certificates")
    return {name: authority(directory, name) for name in ("ours", "others")}


@pytest.fixture(scope="module")
def secured(tmp_path_factory, certificates):
    with closing(Cluster(tmp_path_factory.mktemp("secured"), "tls", certificates["ours"])) as cluster:
        cluster.start_node("safe")
        yield cluster


def test_cluster_with_certificates_measures(secured, certificates, cases_of):
    with dask.config.set(certificates["ours"]), secured.engine("safe/fake") as engine:
        assert measured(engine, on("safe", cases_of("fine")))["fine"].status is Status.OK


def test_supervisor_with_a_certificate_of_another_authority_says_so(secured, certificates, cases_of, caplog):
    with dask.config.set(certificates["others"]):
        engine = DaskEngine(secured.address)
    wait_until(lambda: "is its certificate of the same authority as this one?" in caplog.text)

    assert measured(engine, on("safe", cases_of("fine")))["fine"].status is Status.UNSUPPORTED
    engine.close()


@pytest.mark.parametrize(("ca", "cert"), [("ours", "others"), ("others", "ours")])
def test_worker_with_a_certificate_of_another_authority_is_refused_with_a_sentence(secured, certificates, ca, cert):
    settings = {**certificates[cert], "distributed.comm.tls.ca-file": certificates[ca]["distributed.comm.tls.ca-file"]}
    command = [sys.executable, "-m", "gpuexplore", "worker", secured.address]

    refused = subprocess.run(
        command,
        env={**os.environ, **in_environment(settings)},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )

    assert refused.returncode == 2
    assert refused.stderr.startswith(f"gpuexplore: no connection to {secured.address}: is its certificate of the same ")
    assert refused.stderr.count("\n") == 1
