"""The journal tells what a worker did, up to the moment it died."""

from gpuexplore.core.model import Result, Status
from gpuexplore.jobs.journal import JOURNAL, Begun, journal_reader, write_event


def test_events_are_read_once_and_in_order(tmp_path, cases_of):
    (case,) = cases_of("fine")
    events = [Begun(12), case, Result(case, Status.ERROR, "no")]
    reader = journal_reader(tmp_path)
    assert list(reader()) == []

    with (tmp_path / JOURNAL).open("a") as journal:
        for event in events:
            write_event(journal, event)
            assert list(reader()) == [event]


def test_half_a_line_waits_for_the_rest(tmp_path):
    reader = journal_reader(tmp_path)
    (tmp_path / JOURNAL).write_text('{"kind": "Begun", "va')
    assert list(reader()) == []

    with (tmp_path / JOURNAL).open("a") as journal:
        journal.write('lue": {"pid": 3}}\n')

    assert list(reader()) == [Begun(3)]
