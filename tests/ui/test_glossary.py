"""Terms have tooltips from the glossary, on every page."""

import pytest

from gpuexplore.ui.glossary import PAGE_TERMS, help_on, page_help, terms
from gpuexplore.ui.link import PARAMETERS


@pytest.mark.parametrize("page", list(PARAMETERS))
def test_every_page_has_terms_that_the_glossary_has(page):
    assert set(PAGE_TERMS[page]) <= set(terms())
    assert page_help(page).count("**") == 2 * len(PAGE_TERMS[page])


@pytest.mark.parametrize("page", list(PARAMETERS))
def test_every_page_shows_its_tooltip(page, repository):
    source = (repository / "pages" / f"{page.replace('-', '_')}.py").read_text(encoding="utf-8")

    assert f'page_help("{page}")' in source


def test_a_meaning_is_plain_text_in_one_line():
    assert terms()["Warp"].startswith("32 threads")
    assert not [meaning for meaning in terms().values() if "\n" in meaning or "](" in meaning]


def test_the_terms_of_a_text_are_told():
    told = help_on("The median of 20 samples has an interval; MFU is a fraction.")

    assert "**Sample**" in told
    assert "**MFU**" in told
    assert "**Warp**" not in told
    assert help_on("Nothing to see.") is None
