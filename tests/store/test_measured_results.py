"""Results of one device over all runs, newest first and never more than asked for."""

from dataclasses import replace

import pytest
from sqlalchemy import select, update

from gpuexplore.core.model import Experiment
from gpuexplore.hardware.discovery import VARIABLE, _simulated_devices
from gpuexplore.store import runs
from gpuexplore.store.tables import ENVIRONMENTS
from tests.analysis.made import device, failed, ok
from tests.hardware.processors import OLD_ZEN_4, ZEN_4, ZEN_5, measured_on

HERE = device()


@pytest.fixture
def record(store):
    """Return a function that stores one run of these results."""

    def one(*results, owner="ada"):
        cases = [result.case for result in results]
        experiment = Experiment(
            cases[0].operation,
            tuple(dict.fromkeys(case.shape for case in cases)),
            tuple(dict.fromkeys(case.dtype for case in cases)),
            tuple(dict.fromkeys(case.implementation for case in cases)),
        )
        return store.record(experiment, owner, results=results)

    return one


def on(result, **changes):
    """Return `result` as if measured on another device."""
    environment = replace(result.environment, device=replace(result.environment.device, **changes))
    return replace(result, environment=environment)


def test_newest_comes_first_with_its_run(store, record):
    first, last = record(ok(size=10), ok(size=20)), record(ok(size=30))

    found = store.measured_results(HERE)

    assert [(run_id, one.case.shape["m"]) for run_id, one in found] == [(last, 30), (first, 20), (first, 10)]
    assert found[0][1] == ok(size=30)


def test_what_was_not_measured_and_other_devices_are_left_out(store, record):
    record(ok(size=10), failed(size=20), on(ok(size=30), name="another"))

    assert [one.case.shape["m"] for _, one in store.measured_results(HERE)] == [10]


def test_a_device_of_the_table_is_known_by_its_row(store, record):
    record(on(ok(size=10), name="NVIDIA H200", spec_key="h200-sxm"), on(ok(size=20), name="other", spec_key="b200"))

    row = replace(HERE, id="h200-sxm", kind="table", name="H200 SXM", spec_key="h200-sxm")

    assert [one.case.shape["m"] for _, one in store.measured_results(row)] == [10]


def test_results_of_another_processor_of_this_name_are_left_out_before_the_limit_counts(store, record):
    places = enumerate((ZEN_4, OLD_ZEN_4, ZEN_5, ZEN_5), start=10)
    record(*(measured_on(place, ok(size=size)) for size, place in places))

    assert [one.case.shape["m"] for _, one in store.measured_results(ZEN_4, limit=2)] == [11, 10]
    assert [one.case.shape["m"] for _, one in store.measured_results(ZEN_5)] == [13, 12]


def test_row_of_a_version_without_identities_still_opens(store, record):
    record(ok(size=10))
    with store.writing() as connection:
        (payload,) = connection.execute(select(ENVIRONMENTS.c.payload)).scalars()
        del payload["device"]["identity"]
        connection.execute(update(ENVIRONMENTS).values(payload=payload))

    assert [one for _, one in store.measured_results(HERE)] == [ok(size=10)]


def test_one_owner_can_be_asked_for(store, record):
    mine = record(ok(size=10))
    record(ok(size=20), owner="bob")

    assert [run_id for run_id, _ in store.measured_results(HERE, owner="ada")] == [mine]
    assert len(store.measured_results(HERE)) == 2


def test_runs_and_results_are_bounded(store, record, monkeypatch):
    for size in (10, 20, 30):
        record(ok(size=size), ok(size=size + 1))

    assert {one.case.shape["m"] for _, one in store.measured_results(HERE)} == {10, 11, 20, 21, 30, 31}
    assert [one.case.shape["m"] for _, one in store.measured_results(HERE, limit=3)] == [31, 30, 21]
    monkeypatch.setattr(runs, "MAX_SEARCHED_RUNS", 2)
    assert {one.case.shape["m"] for _, one in store.measured_results(HERE)} == {20, 21, 30, 31}


def test_only_what_came_later_is_read_again(store, record):
    assert store.newest_result() == 0
    record(ok(size=10))
    seen = store.newest_result()
    record(ok(size=20))

    assert store.newest_result() > seen
    assert [
        result.case.shape["m"] for _, result in store.measured_results(HERE, numbers=range(seen + 1, seen + 2))
    ] == [20]
    assert store.measured_results(HERE, numbers=range(seen + 2, seen + 9)) == ()


def test_results_of_a_simulated_device_are_no_measurements(store, record):
    (simulated,) = _simulated_devices({VARIABLE: "1"})
    record(on(ok(size=10), id=simulated.id, kind=simulated.kind, name=simulated.name))

    assert store.measured_results(simulated) == store.measured_results(HERE) == ()
