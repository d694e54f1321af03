"""Lists of runs, and what their owners write on them."""

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import func, select

from gpuexplore.core.errors import InvalidInput, NotFound
from gpuexplore.core.model import Experiment, RunState, RunSummary, Shape
from gpuexplore.store import Description, Wanted
from gpuexplore.store.listing import MOST_LISTED
from gpuexplore.store.prune import purge_deleted
from gpuexplore.store.tables import RESULTS, RUN_TAGS
from tests.analysis.made import ok

SUMMARY = RunSummary("torch in fp32", 2e12, "FLOP/s", 0.4, "rated peak", "noisy", "2 of 3")


@pytest.fixture
def recorded(store):
    """Return a function that stores a finished run of one result, and returns its id."""

    def record(owner="ada", operation="matmul", size=8, device=None, **further):
        result = ok(1e-3, size=size)
        result = replace(result, case=replace(result.case, operation=operation))
        if device:
            on = replace(result.environment.device, name=device)
            result = replace(result, environment=replace(result.environment, device=on))
        asked = Experiment(operation, (result.case.shape,), ("fp32",), ("torch",))
        return store.record(asked, owner, results=[result], **further)

    return record


def ids(runs):
    return [run.id for run in runs]


def test_a_run_is_listed_under_a_title_that_says_what_it_is(store):
    sizes = tuple(Shape.of(m=size, k=size, n=size) for size in (64, 128, 384))
    run_id = store.submit(Experiment("matmul", sizes, ("fp32", "bf16"), ("numpy",)), "ada")

    (run,) = store.listed()

    assert (run.id, run.title, run.owner) == (run_id, "matmul 64 to 384, fp32 bf16", "ada")
    assert (run.operation, run.devices, run.state, run.active) == ("matmul", ("cpu",), RunState.QUEUED, True)
    assert (run.note, run.tags, run.summary, run.origin) == ("", (), None, None)
    assert run == store.listed_run(run_id)
    assert store.load(run_id).title == store.load_summary(run_id).title == run.title


def test_pages_follow_each_other_newest_first_and_miss_none_that_comes_meanwhile(store, recorded):
    made = [recorded() for _ in range(5)]

    first = store.listed(limit=2)
    newer = recorded()
    second = store.listed(limit=2, before=first[-1].number)
    last = store.listed(limit=2, before=second[-1].number)

    assert ids((*first, *second, *last)) == made[::-1]
    assert ids(store.listed(limit=1)) == [newer]
    for limit in (0, MOST_LISTED + 1):
        with pytest.raises(InvalidInput, match=f"limit '?{limit}'?: expected 1 to {MOST_LISTED}"):
            store.listed(limit=limit)


def test_filters_hold_together_and_activities_are_not_listed(store, recorded):
    ours, soft = recorded(device="AMD EPYC, Tesla T4"), recorded(operation="softmax")
    theirs = recorded(owner="bob", device="Tesla T4")
    store.describe(ours, "ada", Description(tags="lab, Monday"))
    store.describe(theirs, "bob", Description(tags=["lab"]))

    assert ids(store.listed(Wanted(owner="ada"))) == [soft, ours]
    assert ids(store.listed(Wanted(operation="softmax"))) == [soft]
    assert ids(store.listed(Wanted(device="tesla T4"))) == [theirs, ours]
    assert ids(store.listed(Wanted(tag=" LAB "))) == [theirs, ours]
    assert ids(store.listed(Wanted(tag="lab"), before=store.listed_run(theirs).number)) == [ours]
    assert ids(store.listed(Wanted(owner="ada", tag="lab", text="epyc 8"))) == [ours]
    assert store.listed(Wanted(operation="softmax", tag="lab")) == ()
    assert store.tags_in_use() == ("lab", "monday")
    assert store.tags_in_use("bob") == ("lab",)


def test_a_search_looks_at_title_note_tags_devices_and_id_and_at_no_pattern(store, recorded):
    run_id = recorded(device="AMD EPYC")
    store.describe(run_id, "ada", Description(title="Über 100% of_it", note="before the fan was cleaned", tags="lab"))
    recorded()

    for text in ("ÜBER", "100% fan", "of_it lab", "epyc", run_id[:6], ""):
        assert run_id in ids(store.listed(Wanted(text=text))), text
    for text in ("1%0", "of%it", "ofXit", "über gone"):
        assert store.listed(Wanted(text=text)) == (), text


def test_what_an_owner_writes_is_seen_by_all_and_nobody_else_writes_it(store, recorded):
    run_id = recorded()

    written = store.describe(run_id, "ada", Description(title="  The\nfan  ", note=" cleaned ", tags=("B", "a", "b ")))

    assert (written.title, written.note, written.tags) == ("The fan", "cleaned", ("a", "b"))
    assert store.load(run_id).tags == ("a", "b")
    for change in ({"title": "mine"}, {"note": "mine"}, {"tags": "mine"}):
        with pytest.raises(InvalidInput, match=f"run {run_id} belongs to another user: only its owner can change it"):
            store.describe(run_id, "bob", Description(**change))
    assert store.listed_run(run_id) == written
    assert store.describe(run_id, "ada", Description(title="", tags=())).title == "matmul 8, fp32"
    assert store.listed_run(run_id).tags == ()
    assert store.listed_run(run_id).note == "cleaned"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"title": "x" * 121}, "title '121 characters': expected at most 120"),
        ({"note": "x" * 2001}, "note '2,001 characters': expected at most 2,000"),
        ({"tags": "x" * 31}, "tag '31 characters': expected at most 30"),
        ({"tags": [str(number) for number in range(11)]}, "tags '11 of them': expected at most 10"),
        ({"tags": ["a,b"]}, "tag 'a,b': expected words without a comma"),
        ({"title": "bell \x07"}, "characters that can be shown"),
    ],
)
def test_what_is_too_long_or_cannot_be_shown_is_named_and_nothing_is_changed(store, recorded, change, named):
    run_id = recorded()
    before = store.listed_run(run_id)

    with pytest.raises(InvalidInput) as refused:
        store.describe(run_id, "ada", Description(**change))

    assert named in str(refused.value)
    assert store.listed_run(run_id) == before


def test_a_deleted_run_is_nowhere_until_it_is_brought_back(store, recorded):
    run_id, kept = recorded(), recorded()
    device = store.load(run_id).results[0].environment.device

    store.delete_run(run_id, "ada")

    assert ids(store.listed()) == [kept]
    assert [run.id for run in store.history()] == [kept]
    assert [found for found, _ in store.measured_results(device)] == [kept]
    for look in (store.load, store.load_summary, store.listed_run):
        with pytest.raises(NotFound, match=f"run '{run_id}' was deleted by its owner"):
            look(run_id)
    store.restore_run(run_id, "ada")
    store.restore_run(run_id, "ada")
    assert ids(store.listed()) == [kept, run_id]


def test_only_owners_and_administrators_delete_and_no_run_that_has_not_ended(store, recorded, experiment):
    run_id, waiting = recorded(), store.submit(experiment, "ada")

    with pytest.raises(InvalidInput, match="only its owner can delete it"):
        store.delete_run(run_id, "bob")
    with pytest.raises(InvalidInput, match="has not ended: cancel it before you delete it"):
        store.delete_run(waiting, "ada")
    with pytest.raises(NotFound, match="no run 'gone'"):
        store.delete_run("gone", "ada")
    store.delete_run(run_id, "root", admin=True)
    with pytest.raises(InvalidInput, match="only its owner can restore it"):
        store.restore_run(run_id, "bob")

    assert ids(store.listed()) == [waiting]


def test_what_was_deleted_long_ago_is_erased_with_its_results_and_tags(store, recorded, clock):
    old, young = recorded(), recorded()
    store.describe(old, "ada", Description(tags="lab"))
    store.delete_run(old, "ada")
    clock.advance(3600)
    store.delete_run(young, "ada")

    assert purge_deleted(store, (clock() - timedelta(minutes=30)).isoformat(timespec="microseconds")) == 1

    with store.reading() as connection:
        assert connection.scalar(select(func.count()).select_from(RESULTS)) == 1
        assert connection.scalar(select(func.count()).select_from(RUN_TAGS)) == 0
    with pytest.raises(NotFound, match=f"no run '{old}'"):
        store.restore_run(old, "ada")
    store.restore_run(young, "ada")


def test_what_comes_from_elsewhere_says_so_and_counts_for_no_device_of_this_server(store, recorded):
    run_id = recorded(origin="lab.json, measured on host lab1")
    run = store.load(run_id)

    assert run.origin == store.listed_run(run_id).origin == "lab.json, measured on host lab1"
    assert store.measured_results(run.results[0].environment.device) == ()
    assert store.newest_alike(run.experiment, "2020") is None


def test_a_summary_is_kept_and_one_that_cannot_be_read_is_unknown(store, recorded):
    run_id = recorded()

    store.set_summary(run_id, SUMMARY)
    assert store.listed_run(run_id).summary == store.load(run_id).summary == SUMMARY
    with store.writing() as connection:
        connection.exec_driver_sql('UPDATE runs SET summary = \'{"share": "most", "new": true}\'')

    assert store.listed_run(run_id).summary is None
    store.set_summary("gone", SUMMARY)


def test_the_devices_a_run_was_measured_on_are_noted_once_each(store, claim):
    results = [ok(1e-3, size=size, on=on) for size in (8, 16) for on in ("cpu", "cuda:0")]
    asked = Experiment(
        "matmul", tuple(Shape.of(m=n, k=n, n=n) for n in (8, 16)), ("fp32",), ("torch",), ("cpu", "cuda:0")
    )
    run_id = store.submit(asked, "ada")
    claimed = store.claim("host", {"cpu", "cuda:0"})
    for result, name in zip(results, ("100% CPU", "Tesla T4", "100% CPU", "Tesla T4"), strict=True):
        on = replace(result.environment.device, name=name)
        store.add_result(claimed, replace(result, environment=replace(result.environment, device=on)))

    assert store.listed_run(run_id).device_names == "100% CPU, Tesla T4"
    assert ids(store.listed(Wanted(device="tesla"))) == [run_id]
    store.describe(run_id, "ada", Description(note="later"))
    assert ids(store.listed(Wanted(text="tesla later"))) == [run_id]
