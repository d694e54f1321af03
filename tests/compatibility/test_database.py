"""The database of the version before: upgraded when it is opened, every run readable, nothing lost."""

import json
import re
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from gpuexplore.analysis.run.analyze import analyze
from gpuexplore.analysis.run.json_report import run_report
from gpuexplore.charts.series import to_frame
from gpuexplore.core.errors import NotFound
from gpuexplore.core.model import Bandwidth, Identity, Peak, RunState, Status
from gpuexplore.core.serialization import encode
from gpuexplore.store import Supervisor
from gpuexplore.store.entries import BY_NAME
from gpuexplore.store.tables import METADATA
from gpuexplore.store.tolerant_decode import check_known
from tests.compatibility.conftest import ADA, DATA, machine

SUPERVISOR = Supervisor("lab/1", host="lab", scope="its locks", pid=1, version="this")

READABLE = {
    "commandrun": RunState.DONE,
    "everystate": RunState.DONE,
    "gpuresults": RunState.DONE,
    "failedruns": RunState.FAILED,
    "runningrun": RunState.RUNNING,
    "queuedruns": RunState.QUEUED,
    "cancelruns": RunState.CANCELLED,
}
UNKNOWN = {
    "unknownops": "operation 'fft': expected matmul, ",
    "unknownfmt": "dtype 'fp4': expected fp64, fp32, tf32, bf16, fp16)",
    "unknownimp": "implementation of matmul 'jax': expected numpy, ",
}


@pytest.fixture(scope="module")
def written():
    """Return the payloads of the results as the version before wrote them, by run."""
    with closing(sqlite3.connect(":memory:")) as before:
        before.executescript((DATA / "database.sql").read_text(encoding="utf8"))
        rows = before.execute("SELECT run_id, payload FROM results ORDER BY case_index").fetchall()
    return {run_id: [json.loads(payload) for key, payload in rows if key == run_id] for run_id, _ in rows}


def only_keys_of(before, now):
    """Return `now` without the keys that the version before did not write."""
    if isinstance(before, list):
        return [only_keys_of(*pair) for pair in zip(before, now, strict=True)]
    return {key: only_keys_of(before[key], now[key]) for key in before} if isinstance(before, dict) else now


def test_the_tables_are_those_of_this_version_once_it_is_opened(store):
    with store.reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})

        assert compare_metadata(context, METADATA) == []


@pytest.mark.parametrize(("run_id", "state"), READABLE.items())
def test_every_run_keeps_its_state_and_its_results_to_the_last_digit(store, written, run_id, state):
    run, before = store.load(run_id), written.get(run_id, [])

    assert run.state is state
    assert [
        only_keys_of(payload, encode(result)) for payload, result in zip(before, run.results, strict=True)
    ] == before


def test_every_status_was_written_by_the_version_before(written):
    assert {payload["status"] for payload in written["everystate"]} == {status.value for status in Status}


@pytest.mark.parametrize("run_id", READABLE)
def test_every_run_can_be_analysed_reported_and_exported(store, run_id):
    run = store.load(run_id)
    analysis = analyze(run.results)

    assert [each["status"] for each in run_report(run.experiment, analysis)["results"]] == [
        result.status.value for result in run.results
    ]
    assert len(to_frame(analysis)) == len(run.results)
    assert all(analyzed.diagnoses for analyzed in analysis.results)


@pytest.mark.parametrize(("run_id", "reason"), UNKNOWN.items())
def test_a_run_that_names_what_is_unknown_is_refused_with_the_reason_of_the_version_before(store, run_id, reason):
    said = f"run {run_id} contains data that this version of gpuexplore does not know (InvalidInput: {reason}"

    with pytest.raises(NotFound, match=re.escape(said)):
        check_known(run_id, store.load_summary(run_id).experiment)


def test_the_history_leaves_out_only_the_run_of_an_unknown_operation(store):
    assert {run.id for run in store.history(ADA)} == {*READABLE, *UNKNOWN} - {"commandrun", "cancelruns", "unknownops"}


def test_what_was_interrupted_goes_on_and_what_waited_has_its_turn(store):
    store.take_over(SUPERVISOR)
    claims = [store.claim(SUPERVISOR.name, {"cpu"}) for _ in range(2)]

    assert {claim.run_id: len(claim.remaining) for claim in claims} == {"runningrun": 3, "queuedruns": 2}


def test_a_queued_run_of_an_unknown_operation_fails_with_its_reason_and_the_queue_goes_on(store):
    store.request_cancel("queuedruns", ADA)

    assert store.claim(SUPERVISOR.name, {"cpu"}) is None
    assert store.claim(SUPERVISOR.name, {"cpu"}).run_id == "unknownfmt"
    with store.reading() as connection:
        state, reason = connection.exec_driver_sql("SELECT state, reason FROM runs WHERE id = 'unknownops'").one()
    assert (state, UNKNOWN["unknownops"] in reason) == ("failed", True)


def test_the_supervisor_of_the_version_before_is_nobody(store):
    assert store.supervisors() == ()


def test_results_of_the_version_before_count_for_the_processor_that_now_says_who_it_is(store):
    found = store.measured_results(replace(machine(), identity=Identity(vendor="GenuineIntel", family=6, model=207)))

    assert {run_id for run_id, _ in found} == {"commandrun", "everystate", "failedruns", "runningrun"}


def test_own_peaks_and_bandwidth_apply_to_every_device_of_their_name_and_say_so(store):
    processor, gpu = machine(), store.load("gpuresults").results[0].environment.device
    talk, flyer = f"a talk ({BY_NAME})", f"a flyer ({BY_NAME})"

    assert store.own_peaks(ADA, processor) == (
        Peak("fp32", "matrix", 4e11, "own", talk),
        Peak("fp32", "vector", 3e11, "own", talk),
    )
    assert store.own_bandwidth(ADA, processor) == Bandwidth(2e10, "own", talk)
    assert store.own_peaks(ADA, gpu) == (Peak("bf16", "matrix", 9e14, "own", flyer),)
    assert store.own_bandwidth(ADA, gpu) == Bandwidth(4.5e12, "own", flyer)


def test_own_peaks_apply_to_no_other_name_and_no_other_owner(store):
    assert store.own_peaks(ADA, replace(machine(), name="another processor")) == ()
    assert store.own_peaks("bob", machine()) == ()
    assert store.own_bandwidth("bob", machine()) is None
