"""The wait for idle pool threads, with made-up threads, and with a real one that spins."""

import threading

import pytest

from gpuexplore.measure.conditions.isolation import MAX_WAIT_S, SLICE_S, wait_for_idle_threads


@pytest.fixture
def tasks(tmp_path):
    """Return what sets the states of made-up threads, in the form of /proc/self/task."""

    def be(*states):
        for number, state in enumerate(states):
            (tmp_path / str(number)).mkdir(exist_ok=True)
            (tmp_path / str(number) / "stat").write_text(f"{number} (a) R (b)) {state} 1 2 3")
        return tmp_path

    return be


def test_a_process_whose_threads_sleep_does_not_wait(tasks):
    assert wait_for_idle_threads(tasks("S", "D", "S"), sleep=lambda _: pytest.fail("waited"))


@pytest.mark.parametrize("slices", [1, 5, 100])
def test_the_wait_lasts_as_long_as_another_thread_runs(tasks, slices):
    slept = []

    def sleep(seconds):
        slept.append(seconds)
        tasks("S", "R" if len(slept) < slices else "S")

    assert wait_for_idle_threads(tasks("S", "R"), sleep)
    assert slept == [SLICE_S] * slices


def test_the_wait_ends_where_threads_never_sleep(tasks):
    slept = []

    assert not wait_for_idle_threads(tasks("R"), slept.append)
    assert len(slept) == int(MAX_WAIT_S / SLICE_S)


def test_the_calling_thread_does_not_count(tasks, monkeypatch):
    monkeypatch.setattr(threading, "get_native_id", lambda: 0)

    assert wait_for_idle_threads(tasks("R", "S"), sleep=lambda _: pytest.fail("waited"))


def test_where_nobody_tells_threads_nobody_waits(tmp_path):
    assert wait_for_idle_threads(tmp_path / "none", sleep=lambda _: pytest.fail("waited"))


def test_a_thread_that_spins_is_seen_and_that_it_has_stopped():
    stop, spins = threading.Event(), threading.Event()

    def spin():
        while not stop.is_set():
            spins.set()

    thread = threading.Thread(target=spin)
    thread.start()
    spins.wait()
    try:
        assert wait_for_idle_threads(sleep=lambda _: stop.set())
        assert stop.is_set()
    finally:
        stop.set()
        thread.join()
