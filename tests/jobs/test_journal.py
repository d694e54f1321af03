"""The journal of a task, up to the moment its worker died, and the case at work, in memory that both read."""

from gpuexplore.core.model import Result, Status
from gpuexplore.jobs.journal import (
    JOURNAL,
    Begun,
    CurrentCase,
    current_case_word,
    journal_reader,
    read_current_case,
    write_current_case,
    write_event,
)


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


def test_a_case_at_work_is_seen_at_once_and_the_next_round_of_the_same_case_is_another_step(tmp_path):
    engine = current_case_word(tmp_path, create=True)
    worker = current_case_word(tmp_path)
    assert read_current_case(engine).count == 0

    write_current_case(worker, 2)
    assert read_current_case(engine) == CurrentCase(1, 2, None)
    write_current_case(worker, 2, 0.5)
    assert read_current_case(engine) == CurrentCase(2, 2, 0.5)
