"""Terms have tooltips from the glossary, on every page."""

import pytest

from gpuexplore.ui.glossary import _terms, help_on, page_help
from gpuexplore.ui.navigation import pages


@pytest.mark.parametrize("page", pages().values(), ids=pages())
def test_every_page_has_terms_that_the_glossary_has(page):
    assert set(page.terms) <= set(_terms())
    assert page_help(page.name).count("**") == 2 * len(page.terms)


@pytest.mark.parametrize("page", pages().values(), ids=pages())
def test_every_page_shows_its_tooltip(page):
    assert f'page_help("{page.name}")' in page.file.read_text(encoding="utf-8")


def test_a_meaning_is_plain_text_in_one_line():
    assert _terms()["Warp"].startswith("32 threads")
    assert not [meaning for meaning in _terms().values() if "\n" in meaning or "](" in meaning]


def test_the_terms_of_a_text_are_told():
    told = help_on("The median of 20 samples has an interval; MFU is a fraction.")

    assert "**Sample**" in told
    assert "**MFU**" in told
    assert "**Warp**" not in told
    assert help_on("Nothing to see.") is None
