import pytest
from hypothesis import given
from hypothesis import strategies as some
from markdown_it import MarkdownIt

from gpuexplore.ui.markdown import WORD_JOINER, plain


@pytest.mark.parametrize(
    "text", ["![x](http://a.example/b.png)", "[a](b)", "**bold**", "$x$", ":red[no]", "<b>", "`c`"]
)
def test_markdown_in_what_was_typed_is_shown_and_not_obeyed(text):
    (inline,) = [token for token in MarkdownIt().parse(f"a {plain(text)}") if token.type == "inline"]
    assert {child.type for child in inline.children} <= {"text", "text_special"}
    assert "".join(child.content for child in inline.children) == f"a {text}"


@given(some.text(alphabet="ab![]()*_`#$:<>|~&- ", max_size=20))
def test_plain_text_comes_back_as_it_was(text):
    (inline,) = [token for token in MarkdownIt().parse(f"a{plain(text)}b") if token.type == "inline"]
    assert "".join(child.content for child in inline.children).replace(WORD_JOINER, "") == f"a{text}b"


@pytest.mark.parametrize("text", [":material/bolt:", ":smile:", "a :+1: b"])
def test_what_is_found_after_markdown_has_read_the_text_is_broken_by_an_invisible_joiner(text):
    shown = plain(text)

    assert WORD_JOINER in shown
    assert shown.replace("\\", "").replace(WORD_JOINER, "") == text


@pytest.mark.parametrize("text", ["cuda:0", "fp32:1.5,bf16:2", "https://a.example/b", "256:8192:x2"])
def test_usual_text_is_escaped_and_nothing_else(text):
    assert plain(text).replace("\\", "") == text
