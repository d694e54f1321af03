"""Whose turn it is, in memory that the engine reads while the worker writes."""

from gpuexplore.jobs.journal import Turn, TurnWord


def test_nobody_has_the_turn_at_first(tmp_path):
    assert TurnWord(tmp_path, create=True).read().count == 0


def test_a_turn_is_seen_at_once_and_the_next_round_of_the_same_case_is_another(tmp_path):
    engine = TurnWord(tmp_path, create=True)
    worker = TurnWord(tmp_path)

    worker.begin(2)
    assert engine.read() == Turn(1, 2, None)
    worker.begin(2, 0.5)
    assert engine.read() == Turn(2, 2, 0.5)
