"""A Dask cluster of real processes on this machine, for tests."""

import json
import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from itertools import count

from gpuexplore.features.cluster.dask.engine import DaskEngine
from gpuexplore.features.cluster.worker_command import SETTINGS, _dask_worker
from tests.waiting import wait_until

SCHEDULER = {
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0",
    "DASK_DISTRIBUTED__SCHEDULER__WORK_STEALING": "False",
    "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "15s",
}
UNREACHABLE = "192.0.2.1"  # for documentation only: RFC 5737
NUMBERS = count()


class Cluster:
    """A scheduler and its nodes."""

    def __init__(self, home, protocol="tcp", certificates=None):
        self.home, self.protocol, self.port = home, protocol, 0
        self.limits = home / "limits.json"
        self.limits.write_text("{}")
        self.processes = []
        self.certificates = in_environment(certificates or {})
        self.start_scheduler()

    @property
    def address(self):
        return f"{self.protocol}://127.0.0.1:{self.port}"

    def start_scheduler(self):
        """Start a scheduler where the last one was, the first one at a port that is free, and wait for it."""
        told = self.home / f"scheduler-{len(self.processes)}.json"
        options = ["--host", f"{self.protocol}://127.0.0.1", "--port", str(self.port), "--scheduler-file", str(told)]
        self.scheduler = self.start([sys.executable, "-m", "dask", "scheduler", *options, "--no-dashboard"], SCHEDULER)
        wait_until(lambda: told.exists() and told.stat().st_size)
        self.port = int(json.loads(told.read_text())["address"].rpartition(":")[2])

    def start_node(self, host, *options, **environment):
        """Start a node and return its process."""
        command = _dask_worker(self.address, ("fake", "cuda:1"), host=host, node="tests.features.cluster.dask_node")
        return self.start([*command, *options], {**SETTINGS, "LIMITS_FILE": str(self.limits), **environment})

    def start_hidden_node(self, host):
        """Start a node that tells everybody an address nobody can reach."""
        port = free_port()
        listen, contact = f"tcp://127.0.0.1:{port}", f"tcp://{UNREACHABLE}:{port}"
        return self.start_node(host, "--listen-address", listen, "--contact-address", contact)

    def start(self, command, environment):
        """Start a process with this cluster's home and certificates, and return it."""
        with (self.home / f"process-{len(self.processes)}.log").open("wb") as log:
            process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                env={
                    **os.environ,
                    **self.certificates,
                    **environment,
                    "GPUEXPLORE_HOME": str(self.home),
                    "PYTHONPATH": os.pathsep.join(sys.path),
                },
            )
        self.processes.append(process)
        return process

    @contextmanager
    def engine(self, device_id="node/fake", **limits):
        """Open an engine once a device is there; the nodes' engines start anew."""
        self.limits.write_text(json.dumps({**limits, "test": next(NUMBERS)}))
        with self.second_engine(device_id) as engine:
            yield engine

    @contextmanager
    def second_engine(self, device_id):
        """Open an engine once a device is there."""
        engine = DaskEngine(self.address)
        try:
            wait_until(lambda: device_id in engine._cluster.devices())
            yield engine
        finally:
            engine.close()

    def close(self):
        for process in reversed(self.processes):
            process.kill()
            process.wait()


def in_environment(settings):
    """Return Dask's settings as variables of the environment."""
    return {f"DASK_{name.replace('.', '__').replace('-', '_').upper()}": value for name, value in settings.items()}


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]
