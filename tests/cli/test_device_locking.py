"""The command line takes the locks of this host, and says for whom it waits."""

import threading

import pytest

from gpuexplore.cli import device_locking
from gpuexplore.core.model import Device
from gpuexplore.jobs.locks import device_lock
from tests.waiting import wait_until

CPU = Device("cpu", "cpu", "a CPU")


def test_device_that_is_free_is_taken_without_a_word(capsys):
    with device_locking.locked(CPU):
        assert device_lock(CPU).is_held()

    assert not device_lock(CPU).is_held()
    assert capsys.readouterr().err == ""


def test_whoever_holds_the_device_is_named_and_waited_for(capsys):
    order = []

    def measure():
        with device_locking.locked(CPU):
            order.append("second")

    with device_lock(CPU):
        waiting = threading.Thread(target=measure)
        waiting.start()
        said = []
        wait_until(lambda: said.append(capsys.readouterr().err) or "cpu is being used by" in "".join(said))
        order.append("first")
    waiting.join()

    assert order == ["first", "second"]


@pytest.mark.parametrize(
    "act", [device_locking.report_lock_holder, lambda device: device_locking.locked(device).__enter__()]
)
def test_bare_machine_waits_for_nobody(monkeypatch, capsys, act):
    monkeypatch.setattr(device_locking, "NEEDED", "a_library_nobody_has")
    with device_lock(CPU):
        act(CPU)

    assert capsys.readouterr().err == ""
