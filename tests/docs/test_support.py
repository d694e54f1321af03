"""docs/support.md is what its generator writes, and names every operation."""

from gpuexplore.operations import OPERATIONS, implementation_names
from scripts.support_matrix import FILE, page
from tests.docs.markdown import words_in_code


def test_page_of_support_is_up_to_date():
    assert FILE.read_text(encoding="utf-8") == page(), "docs/support.md is not up to date: run make docs"


def test_page_of_support_names_every_operation_and_every_implementation():
    assert set(OPERATIONS) | set(implementation_names()) <= words_in_code(page())
