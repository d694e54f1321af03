"""A cached value is made by one thread, and kept."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from gpuexplore.core.once import once
from tests.waiting import wait_until


def test_of_threads_that_ask_at_once_one_makes_it():
    made, asking = [], []

    @once
    def slow(name):
        """A name in capitals."""
        wait_until(lambda: len(asking) == 8)
        made.append(name)
        return name.upper()

    def ask(name):
        asking.append(name)
        return slow(name)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, "abababab")) == list("ABABABAB")
    assert sorted(made) == ["a", "b"]
    assert slow.__doc__ == "A name in capitals."

    slow.cache_clear()
    slow("a")
    assert sorted(made) == ["a", "a", "b"]


def test_what_could_not_be_made_is_made_the_next_time():
    answers = iter([ZeroDivisionError, "made"])

    @once
    def unsure():
        answer = next(answers)
        if answer is ZeroDivisionError:
            raise answer
        return answer

    with pytest.raises(ZeroDivisionError):
        unsure()
    assert (unsure(), unsure()) == ("made", "made")
