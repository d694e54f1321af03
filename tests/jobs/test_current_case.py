"""The case at work, in memory that the engine reads while the worker writes."""

from gpuexplore.jobs.journal import CurrentCase, current_case_word, read_current_case, write_current_case


def test_no_case_is_at_work_at_first(tmp_path):
    assert read_current_case(current_case_word(tmp_path, create=True)).count == 0


def test_a_case_is_seen_at_once_and_the_next_round_of_the_same_case_is_another_step(tmp_path):
    engine = current_case_word(tmp_path, create=True)
    worker = current_case_word(tmp_path)

    write_current_case(worker, 2)
    assert read_current_case(engine) == CurrentCase(1, 2, None)
    write_current_case(worker, 2, 0.5)
    assert read_current_case(engine) == CurrentCase(2, 2, 0.5)
