"""Rows of another version: left out of what is everybody's, named where they were asked for."""

from dataclasses import replace

import pytest
from sqlalchemy import select, update

from gpuexplore.core.errors import NotFound
from gpuexplore.core.model import Bandwidth, Experiment, Peak, Shape
from gpuexplore.core.serialization import encode
from gpuexplore.store.tables import ENVIRONMENTS, OWN_BANDWIDTHS, OWN_PEAKS, RESULTS, RUNS
from gpuexplore.store.tolerant_decode import check_known, keep, take_out
from tests.analysis.made import device, ok

CHANGES = {
    "nothing": lambda row: {},
    "null": lambda row: None,
    "an operation": lambda row: row | {"case": row["case"] | {"operation": "fft"}},
    "an implementation": lambda row: row | {"case": row["case"] | {"implementation": "jax"}},
    "a dtype": lambda row: row | {"case": row["case"] | {"dtype": "fp9"}},
    "an axis": lambda row: row | {"case": row["case"] | {"shape": {"axes": [["q", 3]]}}},
    "a flag": lambda row: row | {"flags": [{"name": "haunted", "evidence": "a noise"}]},
    "a peak of zero": lambda row: _with_peaks(row, flop_per_s=0),
    "a kind of peak": lambda row: _with_peaks(row, kind="rumour"),
}


def _with_peaks(row, **changed):
    row["environment"]["device"]["peaks"] = [row["environment"]["device"]["peaks"][0] | changed]
    return row


def _spoil(store, change):
    """Change the newest result; what it was measured on stays where the change says nothing of it."""
    joined = select(RESULTS.c.number, RESULTS.c.payload, ENVIRONMENTS.c.payload.label("shared"))
    joined = joined.join(ENVIRONMENTS, ENVIRONMENTS.c.digest == RESULTS.c.environment)
    with store.writing() as connection:
        number, payload, shared = connection.execute(joined.order_by(RESULTS.c.number.desc())).first()
        changed, environment = take_out(change({**payload, "environment": {**shared, **payload["environment"]}}))
        values = {"payload": changed} | ({"environment": keep(connection, environment)} if environment else {})
        connection.execute(update(RESULTS).where(RESULTS.c.number == number).values(**values))


@pytest.fixture
def experiment():
    return Experiment("matmul", (Shape.of(m=8, k=8, n=8),), ("fp32",), ("torch",))


@pytest.fixture
def run_again(store, experiment):
    return lambda: store.record(experiment, "somebody", results=[ok(1e-3, size=8)])


@pytest.fixture
def run(run_again):
    return run_again()


def test_a_result_this_version_does_not_know_is_left_out_of_what_everybody_sees(store, run_again):
    for name, change in CHANGES.items():
        run = run_again()
        assert [found for found, _ in store.measured_results(device())] == [run]
        _spoil(store, change)

        assert store.measured_results(device()) == (), name


def test_a_run_with_a_result_nobody_can_read_is_named_where_it_is_asked_for(store, run_again):
    for change in ("nothing", "null", "a flag", "a kind of peak"):
        run = run_again()
        _spoil(store, CHANGES[change])

        with pytest.raises(NotFound, match=f"run {run} contains data that this version of gpuexplore does not know"):
            store.load(run)
        with pytest.raises(NotFound, match=run):
            store.results_after(run, 0)


@pytest.mark.parametrize(
    "changed",
    [{"operation": "fft"}, {"implementations": ("jax",)}, {"dtypes": ("fp9",)}, {"shapes": (Shape.of(q=3),)}],
    ids=str,
)
def test_an_experiment_of_another_version_is_refused_by_name(experiment, changed):
    with pytest.raises(NotFound, match="run abc contains data that this version of gpuexplore does not know"):
        check_known("abc", replace(experiment, **changed))


def test_one_bad_result_does_not_hide_the_good_ones(store, run, experiment):
    _spoil(store, CHANGES["a flag"])
    good = store.record(experiment, "somebody", results=[ok(2e-3, size=8)])

    assert [name for name, _ in store.measured_results(device())] == [good]


def test_a_result_without_the_newer_fields_is_as_good_as_ever(store, run):
    def older(row):
        for name in ("caches", "notes", "spec_key", "uuid"):
            row["environment"]["device"].pop(name)
        row["measurement"].pop("contrasts")
        row["case"]["options"].pop("block")
        return row | {"something": "newer"}

    before = store.load(run)
    _spoil(store, older)

    assert store.load(run) == before


def test_a_run_this_version_does_not_know_is_left_out_of_the_history(store, run_again):
    for asked in ({}, None, {"operation": "fft"}):
        run = run_again()
        assert [each.id for each in store.history()] == [run]
        with store.writing() as connection:
            connection.execute(update(RUNS).where(RUNS.c.id == run).values(experiment=asked))

        assert store.history() == (), asked
        with pytest.raises(NotFound, match=run):
            store.load_summary(run)


def test_an_own_peak_or_bandwidth_that_is_none_is_unknown_and_the_others_count(store):
    peak = Peak("fp32", "matrix", 1e12, "own", "a letter")
    store.set_own_peak("me", device(), peak=peak)
    for payload in ({}, None, [], "x", {"flop_per_s": 0}, {"kind": "rumour"}, {"kind": "formula"}):
        store.set_own_peak("me", device(), peak=replace(peak, dtype="bf16"))
        store.set_own_bandwidth("me", device(), bandwidth=Bandwidth(1e11, "own", "a letter"))
        assert len(store.own_peaks("me", device())) == 2
        assert store.own_bandwidth("me", device())
        changed = encode(peak) | payload if payload and isinstance(payload, dict) else payload
        with store.writing() as connection:
            connection.execute(update(OWN_PEAKS).where(OWN_PEAKS.c.dtype == "bf16").values(payload=changed))
            connection.execute(update(OWN_BANDWIDTHS).values(payload=changed))

        assert store.own_peaks("me", device()) == (peak,), payload
        assert store.own_bandwidth("me", device()) is None, payload
