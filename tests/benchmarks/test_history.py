"""A long history answers every question, at a hundredth of the size that `benchmarks/history.py` fills by itself."""

import random

from benchmarks import history
from gpuexplore.store import Wanted, open_store


def test_a_hundredth_of_a_long_history_answers_every_question(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("GPUEXPLORE_HOME", str(tmp_path))
    with open_store() as store:
        ids = history.fill(store, 1000)
        asked = history.questions(store, ids)
        found = history.measure(asked, 2)
        history.report(found)

        newest = store.listed(limit=3)
        weekly = store.listed(Wanted(tag="weekly"), limit=200)
        assert [run.id for run in store.listed(Wanted(text=ids[77]))] == [ids[77]]
        assert store.listed(Wanted(text=f"zzz{random.random()}")) == ()
        assert len(store.load(ids[77]).results) == 10
    assert len(newest) == 3
    assert weekly
    assert all("weekly" in run.tags for run in weekly)
    printed = capsys.readouterr().out
    assert all(name in printed for name in asked)
    assert {len(times) for times in found.values()} == {2}
