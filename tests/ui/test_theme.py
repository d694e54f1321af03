"""The theme that is made once is the one that Streamlit would send."""

import pytest
from streamlit import config
from streamlit.proto.NewSession_pb2 import CustomThemeConfig
from streamlit.runtime import app_session

from gpuexplore.ui.undocumented import remember_theme

SECTIONS = ("theme", *(f"theme.{category.value}" for category in config.CustomThemeCategories))


@pytest.fixture
def populate(monkeypatch):
    """Give Streamlit's own function, and put it back afterwards."""
    original = app_session._populate_theme_msg
    monkeypatch.setattr(app_session, "_populate_theme_msg", original)
    return original


def sent_by(populate):
    message = CustomThemeConfig()
    populate(message)
    for section in SECTIONS[1:]:
        part = message
        for name in section.split(".")[1:]:
            part = getattr(part, name)
        populate(part, section)
    return message


def test_it_is_what_streamlit_would_send(populate):
    remember_theme()

    expected, first, second = sent_by(populate), *(sent_by(app_session._populate_theme_msg) for _ in range(2))

    assert expected.light.primary_color
    assert expected.dark.sidebar.background_color
    assert first == second == expected


@pytest.mark.parametrize("section", SECTIONS)
def test_options_are_read_once(populate, monkeypatch, section):
    calls = []
    monkeypatch.setattr(app_session, "_populate_theme_msg", lambda *asked: (calls.append(asked), populate(*asked)))
    remember_theme()

    for _ in range(3):
        app_session._populate_theme_msg(CustomThemeConfig(), section)

    assert len(calls) == 1


def test_a_section_without_options_stays_absent(populate):
    remember_theme()
    message = CustomThemeConfig()

    app_session._populate_theme_msg(message.light, "theme.of nobody")

    assert not message.HasField("light")


def test_a_session_asks_by_the_name_that_is_replaced():
    assert "_populate_theme_msg" in app_session.AppSession._create_new_session_message.__code__.co_names
