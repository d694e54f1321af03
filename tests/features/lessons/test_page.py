"""Lessons in each state: the list, a guess, waiting, judged, cancelled, reused, taught."""

import json
import re
from dataclasses import replace
from html import unescape

import pytest

from gpuexplore.activity import Activity, ActivityReport
from gpuexplore.backends.host import installed_versions
from gpuexplore.core.model import Flag, RunState
from gpuexplore.core.serialization import encode
from gpuexplore.features.lessons.lesson import catalog
from gpuexplore.features.lessons.lesson.evidence import tasks_of
from gpuexplore.features.lessons.ui.cards import cards
from gpuexplore.hardware import lessons_directory
from gpuexplore.ui.navigation import pages
from tests.analysis.made import device, ok
from tests.features.lessons.lesson.conftest import module_if_installed, needs
from tests.hardware.processors import ZEN_4, ZEN_5, measured_on
from tests.pages.conftest import OWNER, beat, compiler, experiment, home, page, results, store, texts, told

MADE = module_if_installed("training", "tests.features.training.made_training")

MISTAKES = module_if_installed("mistakes", "gpuexplore.features.mistakes.catalog")

LESSON = "how-long"
KEY = "the-key-of-who-leads"
HERE = (device(memory_bytes=2**34),)
NEW = '+++\ntitle = "Mine <3"\nquestion = "What?"\nminutes = 1\n+++\n## Step\nText.\n'


@pytest.fixture(autouse=True)
def leader_key(monkeypatch):
    monkeypatch.setenv("GPUEXPLORE_LEADER_KEY", KEY)


def place(letter, name=LESSON):
    return (name, catalog().lesson(name).digest, letter)


def pressed(app, label):
    """Press the first button whose label begins so."""
    return next(button for button in app.button if button.label.startswith(label)).click().run()


def ended(store, task, observation, owner=OWNER):
    """Return the id of an activity that has ended with what was observed."""
    run_id = store.submit(task.work, owner)
    claim = store.claim("tests", {"cpu"})
    store.add_observation(claim, observation)
    store.finish(claim, RunState.DONE)
    return run_id


def experiment_of(letter):
    return tasks_of(catalog().lesson(LESSON).step(letter), HERE)[0].work


def measured(store, letter, *results):
    return store.record(experiment_of(letter), "somebody", results=results)


def product(seconds=2e-3, **about):
    import gpuexplore

    found = ok(seconds, size=1024, **about)
    return replace(found, environment=replace(found.environment, app_version=gpuexplore.__version__, libraries={}))


def buttons(app):
    return [button.label for button in app.button]


def shown(app):
    return " ".join(each.proto.body for each in app.get("html"))


def links(app):
    """Return the addresses of the cards by their title."""
    found = re.findall(r'<a href="./([^"]*)" target="_self"><b>([^<]*)</b>', shown(app))
    return {unescape(title): address for address, title in found}


def test_every_lesson_and_every_other_page_of_the_place_has_a_card_that_links_to_it(page):
    app = page("lessons")

    assert not app.exception
    lessons = [f"lessons?lesson={name}" for name in catalog().lessons]
    others = [each.name for each in pages().values() if each.place == "Learn" and each.name != "lessons"]
    assert list(links(app).values()) == lessons + others
    assert shown(app).count('role="img" aria-label="') == len(cards())
    assert "0.38 % of the compute peak" in shown(app)


def test_a_lesson_dropped_into_the_home_is_listed_and_a_broken_one_with_its_reason(page):
    lessons_directory().mkdir()
    (lessons_directory() / "mine.md").write_text(NEW)
    (lessons_directory() / "broken.md").write_text("?")
    app = page("lessons")

    assert links(app)["Mine <3"] == "lessons?lesson=mine"
    assert "What?" in shown(app)
    assert "broken.md, line 1: front matter" in texts(app.warning)


@pytest.mark.parametrize("view", ["learner", "instructor"])
@pytest.mark.parametrize("block", ['train\nmodel = "nope"\nbatch = 3', 'memory\nmodel = "nope"\nbatch = 3'])
def test_a_step_that_asks_for_what_there_is_not_says_so_and_the_others_go_on(page, block, view):
    lessons_directory().mkdir()
    (lessons_directory() / "mine.md").write_text(f"{NEW}```{block}\n```\n## Second\nMore.\n")
    app = page("lessons", lesson="mine", view=view, key=KEY)

    assert not app.exception
    assert "model 'nope': expected" in texts(app.error)
    assert "Second" in texts(app.markdown) if view == "instructor" else "Skip this step" in buttons(app)


def test_an_unknown_lesson_in_a_link_is_named_and_the_list_is_shown(page):
    app = page("lessons", lesson="cooking")

    assert "lesson 'cooking': expected" in texts(app.error)
    assert links(app)["A tour in ten steps"] == "lessons?lesson=tour"


def test_a_step_asks_before_it_measures(page):
    app = page("lessons", lesson=LESSON)

    assert "A guess in seconds" in texts(app.subheader)
    assert app.text_input[0].label == "Time of one 1024 x 1024 fp32 product by torch (ms)"
    assert "Run, about 1 s" in buttons(app)
    assert "Keep" not in texts(app.success)


@pytest.mark.parametrize("typed", ["soon", "nan", "1e999", "-3"])
def test_a_guess_that_is_no_number_is_named_and_nothing_is_queued(page, store, typed):
    app = page("lessons", lesson=LESSON)
    app.text_input[0].set_value(typed)
    pressed(app, "Run")

    assert "expected numbers from 0 to 1e+18 in ms" in texts(app.error)
    assert app.text_input[0].value == typed
    assert store.queue_length() == 0


def test_a_guess_is_kept_and_its_experiment_queued(page, store, beat):
    beat("ready", *HERE)
    app = page("lessons", lesson=LESSON)
    app.text_input[0].set_value("2.5")
    pressed(app, "Run")

    (answer,) = store.answers_of(OWNER)
    assert (answer.guesses, answer.outcomes) == ({"seconds": "2.5"}, None)
    assert store.load_summary(answer.runs[0]).experiment == experiment_of("a")
    assert "you guessed 2.5 ms" in texts(app.markdown).replace("**", "")
    assert "Next in the queue" in texts(app.markdown)
    assert "Cancel" in buttons(page("lessons", lesson=LESSON))  # it survives a reload


def test_a_cancelled_measurement_can_be_made_again(page, store):
    run_id = store.submit(experiment_of("a"), OWNER)
    store.add_answer(OWNER, place("a"), guesses={"seconds": "2"}, runs=[run_id])
    app = page("lessons", lesson=LESSON)
    pressed(app, "Cancel")

    assert store.load_summary(run_id).state is RunState.CANCELLED
    assert "ended early" in texts(app.warning)
    assert "Not measured" in texts(app.markdown)
    pressed(app, "Measure again")
    assert [answer.guesses for answer in store.answers_of(OWNER)] == [{"seconds": "2"}] * 2


@pytest.mark.parametrize(
    ("guess", "flags", "verdict"),
    [
        ("2", (), "Right"),
        ("7", (), "Close"),
        ("70", (), "Off"),
        ("70", ("noisy",), "Off"),
        ("70", ("over_peak",), "Unclear"),
        (None, (), "No guess"),
    ],
)
def test_a_guess_is_judged_in_the_readers_own_figures(page, store, guess, flags, verdict):
    run_id = measured(store, "a", product(flags=[Flag(name, "x") for name in flags]))
    store.add_answer(OWNER, place("a"), guesses={"seconds": guess}, runs=[run_id])
    app = page("lessons", lesson=LESSON)

    assert not app.exception
    assert f"**{verdict}.**" in texts(app.markdown)
    assert "2.00 ms" in texts(app.markdown)
    assert "Keep:" in texts(app.success)
    assert store.answers_of(OWNER)[0].outcomes == (verdict.lower(),)
    assert "orders of magnitude" not in texts([*app.info, *app.markdown]), "a note for instructors"
    assert f"a · {verdict.lower()}" in page("lessons", lesson=LESSON).segmented_control[0].options


def test_a_mistake_is_shown_beside_the_right_way(page, store, beat):
    beat("ready", *HERE)
    wrong, right = MISTAKES.WayReading(0.2), MISTAKES.WayReading(1e-3)
    kind = ("first-call", "time", "a product", "measured")
    seen = MISTAKES.MistakeObservation(*kind, wrong, right, MISTAKES.Detection(True, "x"), MISTAKES.Factor(200.0))
    run_id = ended(store, tasks_of(catalog().lesson(LESSON).step("b"), HERE)[0], ActivityReport(encode(seen)))
    store.add_answer(OWNER, place("b"), guesses={"factor": "150"}, runs=[run_id])
    app = page("lessons", lesson=LESSON, step="b")

    assert not app.exception
    (chart,) = app.get("vega_lite_chart")
    assert "wrong 200 ms" in chart.proto.spec
    assert "**Right.**" in texts(app.markdown)
    assert "Open in Timing mistakes" in buttons(app)


def test_what_was_measured_here_within_the_hour_is_offered_with_its_age(page, store):
    run_id = measured(store, "a", product())
    app = page("lessons", lesson=LESSON)
    app.text_input[0].set_value("2")
    pressed(app, "Use the measurement of")

    assert store.answers_of(OWNER)[0].runs == (run_id,)
    assert store.queue_length() == 0
    assert "**Right.**" in texts(app.markdown)


@pytest.mark.parametrize("letter", ["a", "b"])  # an experiment, and a mistake
def test_who_presses_run_while_another_waits_for_the_same_joins_that_measurement(page, store, beat, letter):
    beat("ready", *HERE)
    (task,) = tasks_of(catalog().lesson(LESSON).step(letter), HERE)
    begun = store.submit(task.work, "somebody")
    app = page("lessons", lesson=LESSON, step=letter)
    pressed(app, "Run")

    assert store.answers_of(OWNER)[0].runs == (begun,)
    assert store.queue_length() == 1
    assert "started by another visitor" in texts(app.markdown)
    assert "Cancel" not in buttons(app)


@pytest.mark.parametrize(
    ("versions", "offered"), [(installed_versions(), True), ({"torch": "0.1"}, False), ({}, False)]
)
def test_an_activity_is_offered_again_only_to_the_same_versions(page, store, beat, versions, offered):
    beat("ready", *HERE)
    (task,) = tasks_of(catalog().lesson(LESSON).step("b"), HERE)
    run_id = ended(store, task, told({}, HERE[0], versions), "somebody")

    assert store.load_activity(run_id).software == versions
    assert ("Use the" in " ".join(buttons(page("lessons", lesson=LESSON, step="b")))) is offered


@pytest.mark.parametrize("flag", ["noisy", "contended"])
def test_a_disturbed_measurement_is_not_offered(page, store, flag):
    measured(store, "a", product(flags=[Flag(flag, "x")]))

    assert not [label for label in buttons(page("lessons", lesson=LESSON)) if label.startswith("Use the")]


def test_a_task_is_done_with_any_own_result(page, store, experiment, results):
    store.record(experiment, OWNER, results=results)
    store.add_answer(OWNER, place("f"), guesses={}, runs=[])
    app = page("lessons", lesson=LESSON, step="f")

    assert not app.exception
    assert ":material/check_circle: Done: one of your results" in texts(app.markdown)


def test_the_way_leads_from_step_to_step_and_back_to_the_list(page):
    app = page("lessons", lesson=LESSON)
    app.button(key="lesson.next").click().run()
    assert "The first call is another thing" in texts(app.subheader)
    app.button(key="lesson.back").click().run()
    assert "A guess in seconds" in texts(app.subheader)
    pressed(app, "All lessons")
    assert links(app)["A tour in ten steps"] == "lessons?lesson=tour"


def test_progress_counts_outcomes(page, store):
    number = store.add_answer(OWNER, place("a"), guesses={}, runs=[])
    store.set_outcomes(number, ["right"])

    assert f"1 of {len(catalog().lesson(LESSON).steps)} steps: 1 right" in shown(page("lessons"))


def test_a_step_that_was_left_before_its_measurement_ended_is_judged_all_the_same(page, store):
    run_id = measured(store, "a", product())
    store.add_answer(OWNER, place("a"), guesses={"seconds": "2"}, runs=[run_id])
    app = page("lessons", lesson=LESSON, step="b")

    assert "a · right" in app.segmented_control[0].options
    assert store.answers_of(OWNER)[0].outcomes == ("right",)


def test_a_step_that_is_measured_says_so_while_another_one_is_shown(page, store):
    run_id = store.submit(experiment_of("a"), OWNER)
    store.add_answer(OWNER, place("a"), guesses={"seconds": "2"}, runs=[run_id])

    assert "a · measuring" in page("lessons", lesson=LESSON, step="b").segmented_control[0].options


def test_answers_are_erased_on_request_and_nobody_elses(page, store):
    for name in (OWNER, "somebody else"):
        store.add_answer(name, place("a"), guesses={}, runs=[])
    app = page("lessons")
    pressed(app, "Erase them")

    assert [len(store.answers_of(name)) for name in (OWNER, "somebody else")] == [0, 1]


def test_the_instructor_sees_notes_this_machines_answer_and_everybodys_guesses(page, store):
    measured(store, "a", product())
    for name, guess in (("ada", "2"), ("bob", "4"), ("cem", "60")):
        number = store.add_answer(name, place("a"), guesses={"seconds": guess}, runs=[None])
        store.set_outcomes(number, ["right" if guess == "2" else "off"])
    app = page("lessons", lesson=LESSON, view="instructor", key=KEY)

    assert not app.exception
    assert "3 learners in the last 6 hours" in texts(app.markdown)
    assert [metric.value for metric in app.metric][:2] == ["4 ms", "2.00 ms (1.99 ms to 2.01 ms)"]
    assert "off **2** · right **1**" in texts(app.markdown)
    assert "orders of magnitude" in texts(app.info)


def test_the_instructor_sees_numbers_by_size_and_who_had_no_idea_without_a_unit(page, store):
    for name, guess in (("ada", "5"), ("bob", "40"), ("cem", "100"), ("dan", None)):
        store.add_answer(name, place("a"), guesses={"seconds": guess}, runs=[None])
    app = page("lessons", lesson=LESSON, view="instructor", key=KEY)

    assert list(app.dataframe[0].value["Guess"]) == ["5 ms", "40 ms", "100 ms", "no idea"]
    assert app.metric[0].value == "40 ms"


def test_the_instructor_sees_every_choice_made_equally_often_and_no_disturbed_measurement(page, store):
    measured(store, "a", product(flags=[Flag("contended", "x")]))
    for name, guess in (("ada", "too long"), ("bob", "too short")):
        store.add_answer(name, place("e"), guesses={"side": guess}, runs=[None])
    app = page("lessons", lesson=LESSON, view="instructor", key=KEY)

    assert "too long, too short" in [metric.value for metric in app.metric]
    assert ("This machine, undisturbed, last hour", "not measured") in [(each.label, each.value) for each in app.metric]


def test_a_reason_keeps_the_case_of_its_units(page, store):
    run_id = measured(store, "a", product(spread=0.9))
    store.add_answer(OWNER, place("a"), guesses={"seconds": "10"}, runs=[run_id])

    assert "The interval is too wide: 2.00 ms" in texts(page("lessons", lesson=LESSON).markdown)


def test_a_question_is_followed_by_no_colon_and_no_guess_is_no_guess(page, store):
    store.add_answer(OWNER, place("c"), guesses={"figure": None}, runs=[])
    said = texts(page("lessons", lesson=LESSON, step="c").markdown)

    assert "Which figure should be reported? you made no guess." in said
    assert "You said no idea" not in said


def test_a_task_that_is_not_done_is_not_yet_done_and_nobody_is_off(page, store):
    measured(store, "a", product())
    store.add_answer(OWNER, place("f", "what-limits-it"), guesses={}, runs=[])

    assert "**Off.**" not in texts(page("lessons", lesson="what-limits-it", step="f").markdown)


@pytest.mark.parametrize(
    ("name", "letter", "said"),
    [
        ("what-limits-it", "e", "matmul m=512,k=512,n=512 in fp32, torch on Tesla T4, predicted: "),
        ("what-limits-it", "e", "on H100 SXM5 80GB, predicted: "),
        (
            "who-computes-what",
            "g",
            "1,000,000 elements in blocks of 256 threads on compute capability 9.0: blocks 3,907",
        ),
        ("who-computes-what", "g", "blocks in the last wave 739"),
        ("does-it-fit", "g", "no batch fits on H100 SXM5 80GB"),
    ],
)
def test_a_step_says_what_is_computed_and_on_which_device(page, store, name, letter, said):
    store.add_answer(OWNER, place(letter, name), guesses={}, runs=[])
    app = page("lessons", lesson=name, step=letter)

    assert said in texts([*app.caption, *app.markdown])


def test_a_step_that_measures_nothing_is_answered_at_once(page, store):
    app = page("lessons", lesson="tour", step="j")
    app.text_input[0].set_value("8")
    pressed(app, "Check")

    assert "A prediction is a time with an interval" in texts(app.markdown) + texts(app.success) + texts(app.info)
    assert store.queue_length() == 0


def test_a_lost_measurement_is_said(page, store):
    store.add_answer(OWNER, place("a"), guesses={"seconds": "2"}, runs=["nothing123"])

    assert "no longer stored" in texts(page("lessons", lesson=LESSON).warning)


def test_what_is_exported_is_json(page, store):
    store.add_answer(OWNER, place("a"), guesses={"seconds": None}, runs=[])
    from gpuexplore.features.lessons.ui.view import _exported

    (told,) = json.loads(_exported(store.answers_of(OWNER)))
    assert (told["lesson"], told["guesses"], told["owner"]) == (LESSON, {"seconds": None}, "you")


def test_a_training_is_drawn_with_its_figures_and_goes_on_on_its_page(page, store, beat):
    on = replace(HERE[0], cores=2)
    beat("ready", on)
    (task,) = tasks_of(catalog().lesson("two-workers").step("a"), [on])
    found = MADE.report(MADE.mode(), MADE.mode("fp32 × 2", ratio=MADE.timing(0.5)), processes=MADE.processes())
    run_id = ended(store, task, ActivityReport(encode(found)))
    store.add_answer(OWNER, place("a", "two-workers"), guesses={"factor": "2"}, runs=[run_id])
    app = page("lessons", lesson="two-workers", step="a")

    assert not app.exception
    assert "two are slower than one" in texts(app.markdown)
    assert "Open in Training" in buttons(app)


def test_text_before_a_guess_has_the_figures_that_need_no_measurement(page):
    app = page("lessons", lesson="what-limits-it", step="b")

    assert not app.exception
    assert "This CPU computes 1.00 TFLOP/s at most" in texts(app.markdown)


def test_a_prediction_in_place_of_a_gpu_says_of_which_one_it_is(page, store):
    lesson = catalog().lesson("from-naive-to-library")
    step = next(
        step
        for step in lesson.steps
        if any(getattr(task.block, "device", "") == "gpu" for task in tasks_of(step, HERE))
    )
    store.add_answer(OWNER, place(step.letter, lesson.name), guesses={}, runs=[None] * 9)
    said = texts(page("lessons", lesson=lesson.name, step=step.letter).caption)

    assert "No GPU in this machine: " in said
    assert "on Tesla T4, predicted: " in said


def test_what_another_processor_of_the_same_name_measured_is_not_offered(page, store, beat):
    beat("ready", ZEN_5)
    measured(store, "a", measured_on(ZEN_4, product()))
    offered = [label for label in buttons(page("lessons", lesson=LESSON, step="a")) if label.startswith("Use the")]
    assert offered == []

    measured(store, "a", measured_on(ZEN_5, product()))
    offered = [label for label in buttons(page("lessons", lesson=LESSON, step="a")) if label.startswith("Use the")]
    assert len(offered) == 1
