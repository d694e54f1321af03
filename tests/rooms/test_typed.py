"""What people type about rooms: codes, names, hours."""

import pytest

from gpuexplore.core.errors import InvalidInput
from gpuexplore.rooms import (
    CODE_LENGTH,
    LETTERS,
    MOST_KNOWN,
    MOST_OF_ALL,
    MOST_OF_ONE,
    MOST_WHEN_TRIED,
    WITHIN_S,
    _WrongCodes,
    name_key,
    new_code,
    read_code,
    read_hours,
    read_link,
    read_message,
    read_name,
    read_title,
    spoken,
)

CODE = "CDFHJK"


def test_codes_are_of_letters_that_nobody_misreads():
    codes = {new_code() for _ in range(200)}

    assert len(codes) > 190
    assert {len(code) for code in codes} == {CODE_LENGTH}
    assert set("".join(codes)) <= set(LETTERS)
    assert not set(LETTERS) & set("AEIOUBGLQSVZ0123456789")
    assert all(read_code(spoken(code).lower()) == code for code in codes)


@pytest.mark.parametrize("text", ["", "KTRMW", "KTRMWXX", "KTRMWA", "KTRMW0", "<b>KTR", "ＫTRMWX", "ktr_mwx"])  # noqa: RUF001
def test_what_is_no_code_is_refused_with_what_is(text):
    with pytest.raises(InvalidInput, match=r"room .*: expected codes of 6 letters out of CDFHJKMNPRTWXY"):
        read_code(text)


@pytest.mark.parametrize(
    ("text", "name"), [(" Ada  L. ", "Ada L."), ("李雷", "李雷"), ("José 2", "José 2"), ("<b>x", "<b>x")]
)
def test_names_are_tidied(text, name):
    assert read_name(text) == name


@pytest.mark.parametrize("text", ["", "   ", "...", "x" * 25, "a\u202eb", "a\u200bb", "a\x07b", "a\ud800"])
def test_names_that_nobody_could_read_are_refused(text):
    with pytest.raises(InvalidInput, match="name"):
        read_name(text)


def test_names_that_look_alike_share_a_key():
    assert name_key("ADA") == name_key("ada") == name_key("Ａｄａ")  # noqa: RUF001
    assert name_key("Ada") != name_key("Eda")


@pytest.mark.parametrize("text", ["0", "169", "-1", "2.5", "two", "", "9" * 30])
def test_hours_out_of_range_are_refused(text):
    with pytest.raises(InvalidInput, match=r"hours .*: expected whole numbers from 1 to 168"):
        read_hours(text)


def test_hours_and_titles_are_read():
    assert (read_hours(" 8 "), read_title("  GPU   course "), read_title("")) == (8, "GPU course", "")
    with pytest.raises(InvalidInput, match="at most 80 characters"):
        read_title("x" * 81)


PAGES = ("benchmark", "lessons", "what-if")


@pytest.mark.parametrize(
    ("text", "link"),
    [
        ("", ""),
        ("http://127.0.0.1:8501/", "benchmark"),
        ("https://gpu.example.org/lab/lessons?lesson=dtypes&step=b#x", "lessons?lesson=dtypes&step=b"),
        (" lessons?lesson=dtypes ", "lessons?lesson=dtypes"),
        ("/what-if/?op=matmul", "what-if?op=matmul"),
        ("?op=matmul&sizes=64", "benchmark?op=matmul&sizes=64"),
    ],
)
def test_of_an_address_the_page_and_its_parameters_are_kept(text, link):
    assert read_link(text, PAGES, "benchmark") == link


@pytest.mark.parametrize(
    "text", ["https://evil.example/login", "javascript:alert(1)", "http://[::1", "lessons?" + "x" * 2001, "lessons\x07"]
)
def test_a_link_to_anywhere_else_is_refused(text):
    with pytest.raises(InvalidInput, match="link"):
        read_link(text, PAGES, "benchmark")


def test_messages_are_of_a_sentence_or_two():
    assert read_message("  Guess   first ") == "Guess first"
    with pytest.raises(InvalidInput, match="at most 280 characters"):
        read_message("x" * 281)


class Clock:
    def __init__(self):
        self.now_s = 0.0

    def __call__(self):
        return self.now_s


def test_whoever_tries_codes_waits_and_others_do_not():
    wrong = _WrongCodes(clock := Clock())
    for _ in range(MOST_OF_ONE):
        wrong.check("1.2.3.4", CODE)
        wrong.note("1.2.3.4")

    with pytest.raises(
        InvalidInput, match=r"60 wrong room codes were sent from your network address.*try again in 10 min"
    ):
        wrong.check("1.2.3.4", CODE)
    wrong.check("5.6.7.8", CODE)
    clock.now_s = WITHIN_S
    wrong.check("1.2.3.4", CODE)


def test_many_addresses_that_try_codes_keep_nobody_out_who_does_not():
    wrong = _WrongCodes(Clock())
    for number in range(MOST_OF_ALL):
        wrong.note(f"10.0.0.{number % 200}")

    with pytest.raises(InvalidInput, match="wrong room codes"):
        wrong.check("10.0.0.1", CODE)
    for _ in range(MOST_WHEN_TRIED):
        wrong.check("fresh", CODE)
        wrong.note("fresh")
    with pytest.raises(InvalidInput, match="wrong room codes"):
        wrong.check("fresh", CODE)


def test_newcomers_to_a_room_that_others_behind_their_address_are_in_wait_for_no_wrong_codes():
    wrong = _WrongCodes(Clock())
    wrong.note_entered("1.2.3.4", CODE)
    for _ in range(MOST_OF_ONE):
        wrong.note("1.2.3.4")

    wrong.check("1.2.3.4", CODE)
    with pytest.raises(InvalidInput, match="wrong room codes"):
        wrong.check("1.2.3.4", "CDFHJM")


def test_addresses_do_not_fill_the_memory():
    wrong = _WrongCodes(Clock())
    for number in range(MOST_KNOWN + 5):
        wrong.note(str(number))
        wrong.note_entered(str(number), CODE)

    assert len(wrong._of) == len(wrong._entered) == MOST_KNOWN
