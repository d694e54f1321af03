import pytest
from hypothesis import given
from hypothesis import strategies as some
from markdown_it import MarkdownIt

from gpuexplore.ui.text import plain


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
    assert "".join(child.content for child in inline.children) == f"a{text}b"
