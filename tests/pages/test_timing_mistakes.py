"""The page Timing mistakes in each of its states."""

import json
from concurrent.futures import Future

import pytest

from gpuexplore.errors import Unsupported
from gpuexplore.mistakes import MISTAKES
from gpuexplore.mistakes.contract import Detection, Factor, Reading
from gpuexplore.ui.timing_mistakes import state
from tests.mistakes.made import observation
from tests.pages.conftest import texts

DEFAULT = next(iter(MISTAKES))


@pytest.fixture(autouse=True)
def asked(monkeypatch):
    """Return what was asked for on this server: nothing yet, and no process is started."""
    jobs = {}
    monkeypatch.setattr(state, "_ASKED", jobs)
    monkeypatch.setattr(state, "_ONE_AT_A_TIME", Never())
    return jobs


class Never:
    """Takes what is submitted and does not do it."""

    def submit(self, function, *arguments):
        return Future()


def done(result=None, error=None):
    future = Future()
    if error:
        future.set_exception(error)
    else:
        future.set_result(result)
    return future


def chart_of(app):
    (chart,) = app.get("vega_lite_chart")
    return json.loads(chart.proto.spec)


def test_every_mistake_has_a_row_with_its_question_and_its_sign(page):
    app = page("timing_mistakes")

    assert not app.exception
    table = app.dataframe[0].value
    assert list(table["Mistake"]) == list(MISTAKES)
    assert list(table["Question"]) == [mistake.title for mistake in MISTAKES.values()]
    assert table["Given away by"][0] == "flag over_peak"


def test_the_first_one_is_told_wrong_beside_right(page):
    app = page("timing_mistakes")
    mistake = MISTAKES[DEFAULT]

    assert [code.value for code in app.code] == [mistake.wrong_code, mistake.right_code]
    assert mistake.title in texts(app.subheader)
    assert mistake.why in texts(app.markdown)
    assert "flag `over_peak`" in texts(app.markdown)


def test_before_anybody_asked_there_is_a_primary_button(page):
    app = page("timing_mistakes")

    assert app.button[0].label == "Make this mistake on cpu"
    assert not app.button[0].disabled
    assert "Nothing was observed on this server yet" in texts(app.caption)


def test_the_button_asks_and_the_page_waits(page, asked):
    app = page("timing_mistakes")
    app.button[0].click().run()

    assert list(asked) == [(DEFAULT, "cpu")]
    assert "take turns on the device" in texts(app.info)
    assert app.button[0].disabled


def test_what_was_observed_is_drawn_and_told(page, asked):
    asked["first-call", "cpu"] = done(observation(note="A note."))

    app = page("timing_mistakes", mistake="first-call")

    assert not app.exception
    assert "measured here" in texts(app.markdown)
    assert "2.0 times the right one (95 % interval 1.8 to 2.2)" in texts(app.markdown).replace("**", "")
    assert "given away" in texts(app.markdown)
    assert "A note." in texts(app.caption)
    assert "wrong 2.00 ms" in chart_of(app)["description"]
    assert app.button[0].label == "Make this mistake again on cpu"


def test_what_is_within_the_noise_is_not_claimed(page, asked):
    asked["minimum", "cpu"] = done(
        observation(factor=Factor(1.0, (0.9, 1.1)), detection=Detection(None, "the two ways agree within the noise"))
    )

    app = page("timing_mistakes", mistake="minimum")

    assert "within the noise on this machine, no difference was shown" in texts(app.markdown)
    assert "undecided" in texts(app.markdown)


def test_a_value_that_is_no_number_is_told_without_a_factor(page, asked):
    asked["fp16-overflow", "cpu"] = done(
        observation(quantity="sum", wrong=Reading(None, text="inf"), right=Reading(65_536), factor=None)
    )

    app = page("timing_mistakes", mistake="fp16-overflow")

    assert "Wrong: inf, right: 65,536" in texts(app.markdown).replace("**", "")


def test_a_published_value_is_called_that_and_says_why_it_is_not_measured(page, asked):
    asked["zeros", "cpu"] = done(observation(mistake="zeros", how="published", source="a leaflet", rounds=0))

    app = page("timing_mistakes", mistake="zeros")

    assert "published" in texts(app.markdown)
    assert "Source: a leaflet" in texts(app.caption)
    assert "Not measured here: a CPU's clock" in texts(app.caption)
    assert app.button[0].label == "Show the values"


def test_a_mistake_that_could_not_be_made_says_why_and_can_be_asked_for_again(page, asked):
    asked[DEFAULT, "cpu"] = done(error=Unsupported("cpu is being measured: try again in a minute"))

    app = page("timing_mistakes")

    assert "cpu is being measured" in texts(app.error)
    assert not app.button[0].disabled


def test_a_mistake_without_a_sign_says_why(page):
    app = page("timing_mistakes", mistake="not-in-turns")

    assert "Nothing gives it away." in texts(app.markdown)
    assert MISTAKES["not-in-turns"].why_none in texts(app.markdown)


def test_a_name_that_is_not_there_is_named_and_the_first_is_shown(page):
    app = page("timing_mistakes", mistake="no-clock")

    assert not app.exception
    assert "no-clock" in texts(app.error)
    assert app.selectbox[0].value == DEFAULT


def test_an_error_nobody_expected_is_not_hidden(asked):
    asked[DEFAULT, "cpu"] = done(error=ZeroDivisionError())

    with pytest.raises(ZeroDivisionError):
        state.observation_for(DEFAULT, observation().environment.device)
