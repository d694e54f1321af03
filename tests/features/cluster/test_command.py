"""`gpuexplore worker` becomes a Dask worker whose resources are this machine's devices."""

import os
import sys
from itertools import pairwise

import pytest

from gpuexplore.cli import main
from gpuexplore.cli.output import EXIT_UNUSABLE
from gpuexplore.features.cluster import dask
from gpuexplore.features.cluster.worker_command import SETTINGS, check_installed
from gpuexplore.hardware.discovery import VARIABLE
from tests.cli.conftest import home

NOBODY = "tcp://127.0.0.1:1"


@pytest.fixture
def executed(monkeypatch):
    """Return what the process would become."""
    calls = []
    monkeypatch.setattr(os, "execve", lambda *call: calls.append(call))
    monkeypatch.setattr("gpuexplore.features.cluster.dask.cluster.CONNECT_S", 0.1)
    monkeypatch.setenv(VARIABLE, "1")
    monkeypatch.setenv("GPUEXPLORE_HOST", "lab2")
    return calls


def test_worker_is_one_of_dask_with_a_thread_and_a_resource_per_device(executed):
    main(["worker", NOBODY, "--lifetime", "55m", "--dask=--interface lo"])

    ((program, words, environment),) = executed
    assert program == sys.executable
    assert words[1:5] == ["-m", "dask", "worker", NOBODY]
    options = dict(pairwise(words))
    assert (options["--name"], options["--lifetime"], options["--interface"]) == ("lab2", "55m", "lo")
    assert (options["--memory-limit"], options["--death-timeout"]) == ("0", "60")
    assert {"cpu=1", "simulated:0=1"} <= set(options["--resources"].split())
    assert int(options["--nthreads"]) == len(options["--resources"].split())
    assert {"--no-nanny", "--no-dashboard"} <= set(words)
    assert SETTINGS.items() <= environment.items()


def test_scheduler_off_this_machine_needs_tls(executed, capsys):
    assert main(["worker", "tcp://192.0.2.1:8786"]) == EXIT_UNUSABLE

    assert "expected tls://HOST:PORT" in capsys.readouterr().err
    assert not executed


def test_missing_extra_is_named(monkeypatch):
    monkeypatch.setattr(dask, "find_spec", lambda name: None)

    with pytest.raises(dask.InvalidInput, match=r"pip install 'gpuexplore\[dask\]'"):
        check_installed()
