"""`gpuexplore worker`: lend this machine's devices to a cluster, until its scheduler goes or a time is over."""

import argparse
import os
import shlex
import sys
from collections.abc import Sequence

from gpuexplore.cli.output import declare
from gpuexplore.features.cluster.dask import check_installed
from gpuexplore.hardware import discover
from gpuexplore.jobs.heartbeat import host_name

SETTINGS = {  # what Dask does apart from its tasks, and would disturb a measurement
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__DIAGNOSTICS__NVML": "False",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `worker`."""
    declare(
        parser,
        {
            "scheduler tls://HOST:PORT": "the Dask scheduler; TLS is set up as for Dask",
            "--lifetime TIME": "leave the cluster after this time, e.g. 55m for a job of an hour",
            "--dask OPTIONS": {"default": "", "help": "further options of dask worker, e.g. --dask='--interface ib0'"},
        },
    )


def execute(arguments: argparse.Namespace) -> int:
    """Become `dask worker`; return only when that is impossible."""
    check_installed()
    from gpuexplore.features.cluster.dask.cluster import check_certificates

    check_certificates(arguments.scheduler, "worker")
    options = ["--lifetime", arguments.lifetime] if arguments.lifetime else []
    command = _dask_worker(arguments.scheduler, [device.id for device in discover()])
    os.execve(sys.executable, [*command, *options, *shlex.split(arguments.dask)], {**os.environ, **SETTINGS})


def _dask_worker(
    scheduler: str,
    device_ids: Sequence[str],
    *,
    host: str | None = None,
    node: str = "gpuexplore.features.cluster.dask.node",
) -> list[str]:
    """Return the command of a Dask worker whose resources are devices, one task at a time on each.

    Args:
        scheduler: its address.
        device_ids: of this machine.
        host: the worker's name, which is that of its devices' host.
        node: the module that makes a node of the worker.
    """
    resources = " ".join(f"{device_id}=1" for device_id in device_ids)
    threads = str(len(device_ids))
    options = ["--no-nanny", "--nthreads", threads, "--name", host or host_name(), "--resources", resources]
    options += ["--memory-limit", "0", "--no-dashboard", "--death-timeout", "60", "--preload", node]
    return [sys.executable, "-m", "dask", "worker", scheduler, *options]
