"""The theme as Streamlit sends it at each rerun, made once: it never changes while the server runs.

Streamlit reads some three hundred options for it at every rerun of every session, on the loop that sends to all: with
a hundred who watch, a quarter of the server's work. This rests on a function of Streamlit that is not public: a test
holds what is sent to what Streamlit would send.
"""

from functools import cache

from streamlit.proto.NewSession_pb2 import CustomThemeConfig
from streamlit.runtime import app_session


def remember_theme() -> None:
    """Let every session send the theme that was made for the first."""
    populate = app_session._populate_theme_msg

    @cache
    def made(section: str) -> CustomThemeConfig:
        message = CustomThemeConfig()
        populate(message, section)
        return message

    def merge(msg: CustomThemeConfig, section: str = "theme") -> None:
        if made(section).ByteSize():  # to merge nothing would still say that the section is there
            msg.MergeFrom(made(section))

    app_session._populate_theme_msg = merge
