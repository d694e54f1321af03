"""What the worker promises, without a process of its own."""

import subprocess
import sys

import pytest

from gpuexplore.jobs.engines.process import THREAD_VARIABLES, worker_environment
from gpuexplore.jobs.journal import Begun, JournalReader
from gpuexplore.jobs.worker import measure_to_journal
from gpuexplore.model import Device, Result, Status
from gpuexplore.serialization import encode


@pytest.mark.slow
def test_worker_module_leaves_numpy_to_the_runner():
    told = (
        "import sys, gpuexplore.jobs.worker as _; print(sorted({'numpy', 'sqlalchemy', 'pebble'} & sys.modules.keys()))"
    )

    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_every_case_ends_with_a_result_even_when_the_runner_raises(tmp_path, cases_of):
    fine, raising, late = cases = cases_of("fine", "raising", "fine-too")

    measure_to_journal("tests.jobs.fake_runner", encode(cases), encode(Device("fake", "fake", "x")), str(tmp_path))

    begun, *events = JournalReader(tmp_path).new()
    results = {event.case: event.status for event in events if isinstance(event, Result)}
    assert isinstance(begun, Begun)
    assert results == {fine: Status.OK, raising: Status.ERROR, late: Status.ERROR}


@pytest.mark.parametrize(
    ("device", "visible"),
    [
        (Device("cuda:1", "cuda", "GPU", uuid="GPU-12"), "GPU-12"),
        (Device("cuda:1", "cuda", "GPU"), "1"),
        (Device("cpu", "cpu", "CPU"), ""),
    ],
)
def test_worker_sees_its_own_device_only(device, visible):
    environment = worker_environment(device)

    assert environment["CUDA_VISIBLE_DEVICES"] == visible
    assert environment["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert len({environment[thread_variable] for thread_variable in THREAD_VARIABLES}) == 1
