"""Whose turn it is, in memory that the engine reads while the worker writes."""

from gpuexplore.jobs.journal import Turn, begin_turn, read_turn, turn_word


def test_nobody_has_the_turn_at_first(tmp_path):
    assert read_turn(turn_word(tmp_path, create=True)).count == 0


def test_a_turn_is_seen_at_once_and_the_next_round_of_the_same_case_is_another(tmp_path):
    engine = turn_word(tmp_path, create=True)
    worker = turn_word(tmp_path)

    begin_turn(worker, 2)
    assert read_turn(engine) == Turn(1, 2, None)
    begin_turn(worker, 2, 0.5)
    assert read_turn(engine) == Turn(2, 2, 0.5)
