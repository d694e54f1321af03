"""What no browser of ours sends, and what nobody should: each page says what it accepts, and nothing is stored."""

import pytest

from gpuexplore.core.typed_text import LONGEST_LIST, LONGEST_TEXT
from gpuexplore.ui.link import LISTS, MOST_NAMED, MOST_RUNS, PARAMETERS
from tests.pages.conftest import texts

PAGES = list(PARAMETERS)
LONG = "x" * (LONGEST_TEXT + 1)
MANY_IDS = ".".join(f"{number:010}" for number in range(20_000))


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(
    ("text", "refusal"), [(LONG, "at most 200"), ("a\x00b", "characters that can be shown")], ids=["long", "nul"]
)
def test_every_field_refuses_what_cannot_be_stored(page, name, text, refusal):
    app = page(name)
    # What stands in a form is judged when it is sent
    fields = [(field.key, field.value) for field in text_fields(app) if not (field.disabled or field.form_id)]
    accepted = []
    for key, value in fields:
        (field,) = [field for field in text_fields(app) if field.key == key]
        field.set_value(text).run()
        if app.exception or refusal not in texts([*app.error, *app.warning]):
            accepted.append(key)
        restored = [field for field in text_fields(app) if field.key == key]
        if restored:
            restored[0].set_value(value)
        else:
            app = page(name)

    assert accepted == []


def text_fields(app):
    return [*app.text_input, *app.text_area]


@pytest.mark.parametrize("tab", [0, 1], ids=["peak", "bandwidth"])
@pytest.mark.parametrize("source", [LONG, "a leaflet\x00"], ids=["long", "nul"])
def test_the_source_of_a_custom_peak_is_a_short_text(page, store, tab, source):
    app = page("devices")
    rate, said_by = [field for field in app.text_input if field.form_id][2 * tab : 2 * tab + 2]
    rate.set_value("1")
    said_by.set_value(source)
    [button for button in app.button if button.form_id][tab].click().run()

    assert "source '" in texts(app.error)
    assert not app.success


@pytest.mark.parametrize("name", PAGES)
def test_parameters_that_are_too_long_or_unknown_are_named_and_those_too_long_leave_the_link(page, name):
    # the field of the first refuses it; an older address decides the second
    apart = {"q", "view"} if name == "memory" else {"q"}
    parameters = [parameter for parameter in PARAMETERS[name] if parameter not in apart]
    accepted = []
    for start in range(0, max(len(parameters), 1), MOST_NAMED):
        long = parameters[start : start + MOST_NAMED]
        app = page(name, **dict.fromkeys(long, "x" * 90_000), sise="64")
        assert not app.exception
        assert "Unknown in this link: 'sise'" in texts(app.warning)
        assert (PARAMETERS[name] or ("This page reads none.",))[0] in texts(app.warning)
        for parameter in long:
            most = LONGEST_LIST if parameter in LISTS else LONGEST_TEXT
            if f"{parameter} '90,000 characters': expected at most {most:,}" not in texts(app.warning):
                accepted.append(parameter)
            if "xx" in str(dict(app.query_params).get(parameter)):
                accepted.append(f"{parameter} stays")

    assert accepted == []


@pytest.mark.parametrize(
    ("name", "query"), [("kernels", {"tab": "launch", "sweep": MANY_IDS}), ("roofline", {"measuring": MANY_IDS})]
)
def test_a_link_names_at_most_64_runs(page, name, query):
    app = page(name, **query)

    assert f"expected at most {MOST_RUNS} of them" in texts(app.warning)
    assert "no run" not in texts(app.warning), "none of them was looked for"


def test_what_was_wrong_with_a_link_is_said_until_another_page_is_opened(page):
    app = page("benchmark", run=LONG).run()

    assert "run '201 characters'" in texts(app.warning)


def test_an_unknown_parameter_is_named_in_short(page):
    app = page("benchmark", **{"y" * 500_000: "1"})

    assert len(texts(app.warning)) < 500


def test_the_rest_of_a_link_with_a_bad_value_holds(page):
    app = page("devices", q="H100", run=LONG).run()

    assert "run '201 characters'" in texts(app.warning)
    assert app.text_input(key="q").value == "H100"
