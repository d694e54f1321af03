"""The page Timing mistakes in each of its states."""

import pytest

from gpuexplore.activity import of_kind
from gpuexplore.core.model import RunState
from gpuexplore.core.notebooks import titles
from gpuexplore.core.serialization import encode
from gpuexplore.features.mistakes.catalog import EXPECTED_S, MISTAKES, Detection, Factor, WayReading, activity_of
from tests.features.mistakes.catalog.made import observation
from tests.hardware.processors import ZEN_4
from tests.pages.conftest import beat, compiler, home, page, spec, store, texts, told

DEFAULT = next(iter(MISTAKES))


@pytest.fixture
def asked(store):
    """Return how a mistake is asked for on this server; its id."""
    return lambda name: store.submit(activity_of(name), "somebody")


@pytest.fixture
def seen(store, asked):
    """Return how a mistake was made on this server, with what was observed; its id."""

    def made(name, **about):
        run_id = asked(name)
        claim = store.claim("tests", {"cpu"})
        store.add_observation(claim, told(encode(observation(mistake=name, **about))))
        store.finish(claim, RunState.DONE)
        return run_id

    return made


def test_every_mistake_has_a_row_and_the_first_is_explained_with_a_primary_button(page):
    app = page("timing-mistakes")
    mistake = MISTAKES[DEFAULT]

    assert not app.exception
    kinds = [element.type for element in app.main]
    assert kinds.index("selectbox") < kinds.index("code") < kinds.index("dataframe")
    table = app.dataframe[0].value
    assert list(table["Mistake"]) == list(MISTAKES)
    assert list(table["Question"]) == [mistake.title for mistake in MISTAKES.values()]
    assert table["Detected by"][0] == "flag over_peak"
    assert table["Notebooks"][0] == " ".join(mistake.rows)
    assert f"In the notebooks: {titles(mistake.rows)}." in texts(app.caption)
    assert [code.value for code in app.code] == [mistake.wrong_code, mistake.right_code]
    assert mistake.title in texts(app.subheader)
    assert mistake.why in texts(app.markdown)
    assert "flag `over_peak`" in texts(app.markdown)
    assert app.button[0].label == "Reproduce this mistake on cpu"
    assert not app.button[0].disabled
    assert "Not measured here in the last hour" in texts(app.caption)


def test_the_button_queues_the_mistake_and_the_page_waits(page, store):
    app = page("timing-mistakes")
    app.button[0].click().run()

    run = store.load_activity(app.query_params["activity"])
    assert run.activity == of_kind("mistake", {"name": DEFAULT}, expected_s=EXPECTED_S)
    assert app.button[0].disabled
    assert "hourglass" in texts(app.markdown)


def test_what_somebody_else_observed_within_the_hour_is_drawn_and_told(page, seen):
    seen("first-call", note="A note.")

    app = page("timing-mistakes", mistake="first-call")

    assert not app.exception
    assert "measured here" in texts(app.markdown)
    assert "right value: 2.00× (1.80× to 2.20×): almost certainly too large" in texts(app.markdown).replace("**", "")
    assert "not detectable" in texts(app.markdown)
    assert "A note." in texts(app.caption)
    assert "wrong 2.00 ms" in spec(app)["description"]
    assert app.button[0].label == "Reproduce this mistake again on cpu"


def test_a_link_to_an_activity_shows_its_mistake_and_another_choice_drops_it(page, seen):
    app = page("timing-mistakes", activity=seen("minimum"))

    assert app.selectbox[0].value == "minimum"
    assert "wrong 2.00 ms" in spec(app)["description"]
    app.selectbox[0].select(DEFAULT).run()

    assert app.selectbox[0].value == DEFAULT
    assert "activity" not in app.query_params
    assert "Not measured here" in texts(app.caption)


@pytest.mark.parametrize(
    ("found", "factor", "said"),
    [
        (True, Factor(2.0, (1.8, 2.2)), "[detected] it shows."),
        (False, Factor(2.0, (1.8, 2.2)), "[not detected] it shows."),
        (None, Factor(1.0, (0.9, 1.1)), "undecided"),
        (None, Factor(1.0, (0.9, 1.1)), "between 0.900× and 1.10×: unclear whether it differs on this machine"),
    ],
)
def test_a_sign_that_was_looked_for_is_told_with_its_evidence_and_noise_is_not_claimed(page, seen, found, factor, said):
    seen("minimum", factor=factor, detection=Detection(found, "it shows"))

    assert said in texts(page("timing-mistakes", mistake="minimum").markdown)


def test_a_value_that_is_no_number_is_told_without_a_factor(page, seen):
    seen("fp16-overflow", quantity="sum", wrong=WayReading(None, text="inf"), right=WayReading(65_536), factor=None)

    app = page("timing-mistakes", mistake="fp16-overflow")

    assert "Wrong: inf, right: 65,536" in texts(app.markdown).replace("**", "")


def test_a_published_value_is_called_that_and_says_why_it_is_not_measured(page, seen):
    seen("zeros", how="published", source="a leaflet", rounds=0)

    app = page("timing-mistakes", mistake="zeros")

    assert "published" in texts(app.markdown)
    assert "Source: a leaflet" in texts(app.caption)
    assert "Not measured here: the effect of the values on a CPU's clock" in texts(app.caption)
    assert app.button[0].label == "Show the values"


def test_a_mistake_that_could_not_be_made_says_why_and_can_be_asked_for_again(page, store, asked):
    run_id = asked(DEFAULT)
    store.finish(store.claim("tests", {"cpu"}), RunState.FAILED, reason="the worker crashed")

    app = page("timing-mistakes", activity=run_id)

    assert "the worker crashed" in texts(app.error)
    assert not app.button[0].disabled


def test_a_mistake_without_a_sign_says_why(page):
    app = page("timing-mistakes", mistake="not-in-turns")

    assert "Cannot be detected." in texts(app.markdown)
    assert MISTAKES["not-in-turns"].why_none in texts(app.markdown)


@pytest.mark.parametrize(("query", "name"), [("mistake", "no-clock"), ("activity", "no-such-id")])
def test_a_name_or_an_activity_that_is_not_there_is_named_and_the_first_is_shown(page, query, name):
    app = page("timing-mistakes", **{query: name})

    assert not app.exception
    assert name in texts([*app.error, *app.warning])
    assert app.selectbox[0].value == DEFAULT


def test_what_another_processor_of_the_same_name_observed_is_not_shown(page, seen, beat):
    seen("minimum")
    beat("ready", ZEN_4)

    assert "Not measured here in the last hour" in texts(page("timing-mistakes", mistake="minimum").caption)
