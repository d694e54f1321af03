"""What text is accepted, and what a refusal names."""

import pytest

from gpuexplore.core.errors import InvalidInput, check_known
from gpuexplore.core.typed_text import LONGEST_TEXT, check_text, readable, spreadsheet_safe
from gpuexplore.core.units import whole_typed
from gpuexplore.request import Request, resolve

MOST = 64


@pytest.mark.parametrize("text", ["", "a leaflet, page 2 – “dense”", "ß" * LONGEST_TEXT, "64\n128\t256"])
def test_ordinary_text_is_accepted(text):
    assert check_text("source", text) is None


def test_long_text_is_refused_with_both_lengths():
    with pytest.raises(InvalidInput, match="source '20,000,000 characters': expected at most 200"):
        check_text("source", "x" * 20_000_000)


@pytest.mark.parametrize("character", ["\x00", "\x1b", "\x85", "\ud800"])
def test_what_no_database_stores_and_no_page_shows_is_refused(character):
    with pytest.raises(InvalidInput, match=r"source '.*': expected characters that can be shown") as caught:
        check_text("source", f"a{character}b")

    assert str(caught.value).isprintable(), "the refusal itself can be shown"


def test_values_of_a_list_are_counted_and_each_may_be_as_long_as_a_text():
    values = ["x" * (LONGEST_TEXT - 1)] * MOST

    assert check_text("sweep", ".".join(values), ".,", most=MOST) is None
    with pytest.raises(InvalidInput, match=r"sweep 'xxx.*': expected at most 64 of them"):
        check_text("sweep", ",".join([*values, ""]), ".,", most=MOST)
    with pytest.raises(InvalidInput, match="sweep '201 characters': expected at most 200"):
        check_text("sweep", "x" * (LONGEST_TEXT + 1), ".,", most=MOST)


def test_a_list_that_nobody_counts_has_a_length():
    with pytest.raises(InvalidInput, match="gpus '200,000 characters': expected at most 12,800"):
        check_text("gpus", "x," * 100_000, ",")


@pytest.mark.parametrize("field", ["operation", "sizes", "shapes", "dtypes", "threads", "block", "budget"])
@pytest.mark.parametrize("text", ["1" * (LONGEST_TEXT + 1), "a\x00", "a\ud800"])
def test_no_field_of_a_request_takes_it(field, text):
    with pytest.raises(InvalidInput, match=f"{field} '.*': expected (at most 200|characters that can be shown)"):
        resolve(Request(**{field: text}), ["cpu"])


def test_words_of_a_program_lose_commands_to_the_terminal_and_show_what_is_no_text():
    words = "a\x1b[31mred\x1b[0m \x00 \ud800 \x1b]0;title\x07b\u202ec\x9bd\n\te"

    assert readable(words) == "ared \ufffd \ufffd bc\ufffdd\n\te"
    assert readable("x" * 10**6, 500) == "x" * 500


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_a_cell_that_a_spreadsheet_would_compute_begins_with_an_apostrophe(text):
    assert spreadsheet_safe(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "1", "a=1", " =1", "Tesla T4"])
def test_other_cells_stay_as_they_are(text):
    assert spreadsheet_safe(text) == text


@pytest.mark.parametrize("accepted", [{"numpy": 1, "torch": 2}, ("numpy", "torch"), ["numpy", "torch"]])
def test_name_has_to_be_among_those_accepted_and_the_error_lists_them(accepted):
    check_known("library", "torch", accepted)

    with pytest.raises(InvalidInput, match=r"^library 'jax': expected numpy, torch$"):
        check_known("library", "jax", accepted)


@pytest.mark.parametrize("text", ["", "0", "2049", "8.5", "-8", "many"])
def test_whole_number_out_of_its_limits_is_refused_with_them(text):
    assert whole_typed("size", " 2_048 ", 2048) == 2048
    assert whole_typed("size", "0", 2048, least=0) == 0

    with pytest.raises(InvalidInput, match=f"^size '{text}': expected whole numbers from 1 to 2,048$"):
        whole_typed("size", text, 2048)
