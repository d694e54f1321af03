"""Answers are kept, judged later, listed and erased."""

PLACE = ("how-long", "0123456789abcdef", "a")


def test_answers_are_kept_in_order_with_their_runs(store):
    store.add_answer("ada", PLACE, guesses={"seconds": "2.5"}, runs=["abc"])
    store.add_answer("ada", PLACE, guesses={"seconds": None}, runs=[None])

    first, second = store.answers_of("ada")
    assert (first.guesses, first.runs, first.outcomes) == ({"seconds": "2.5"}, ("abc",), None)
    assert (second.guesses, second.runs, second.number > first.number) == ({"seconds": None}, (None,), True)


def test_outcomes_are_noted_once_they_are_judged(store):
    number = store.add_answer("ada", PLACE, guesses={}, runs=[])
    store.set_outcomes(number, ["right", "no guess"])

    assert store.answers_of("ada", "how-long")[0].outcomes == ("right", "no guess")


def test_everybodys_answers_of_one_version_of_a_lesson_are_found(store, clock):
    store.add_answer("ada", PLACE, guesses={}, runs=[])
    clock.advance(3600)
    since = store.now()
    newest = [store.add_answer(name, PLACE, guesses={}, runs=[]) for name in ("bob", "cem")]
    store.add_answer("ada", ("how-long", "another text", "a"), guesses={}, runs=[])

    assert [answer.number for answer in store.answers_since(*PLACE[:2], since)] == newest[::-1]


def test_an_owner_erases_what_is_theirs_alone(store):
    store.add_answer("ada", PLACE, guesses={}, runs=[])
    store.add_answer("bob", PLACE, guesses={}, runs=[])

    assert store.erase_answers("ada") == 1
    assert store.answers_of("ada") == ()
    assert len(store.answers_of("bob")) == 1


def test_newest_run_of_the_same_experiment_is_found(store, experiment, experiment_on, clock, failed):
    since = store.now()
    store.record(experiment_on("cuda:0"), "ada", results=())
    store.record(experiment, "ada", results=())
    newest = store.record(experiment, "bob", results=[failed(experiment.cases()[0])])

    found = store.newest_alike(experiment, since)
    assert (found.id, len(found.results)) == (newest, 1)
    clock.advance(3600)
    assert store.newest_alike(experiment, store.now()) is None
