"""The parameters of a link: which each page reads, their longer names, and a word on those that no page reads."""

from collections.abc import Mapping
from urllib.parse import urlencode

import streamlit as st

from gpuexplore.core import InvalidInput, check_text
from gpuexplore.request import SEPARATORS, SHORT_NAMES, short_names
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.navigation import FIRST_PAGE, pages

PAGE = "link.page"  # the session's key of the page that is shown
PROBLEMS = "link.problems"  # the session's key of what could not be used of the link, and of its page
PARAMETERS: Mapping[str, tuple[str, ...]] = {
    name: page.parameters for page in pages().values() for name in (page.name, page.also) if name
}
# the parameters that are lists, with what separates their values
LISTS: Mapping[str, str] = (
    {SHORT_NAMES[name]: separator for name, separator in SEPARATORS.items()}
    | dict.fromkeys(("gpus", "times", "peaks", "price", "hide"), ",")
    | {"layers": "\n;", "measuring": ".,", "sweep": ".,", "expression": ";"}
)
MOST_RUNS = 64
MOST_NAMED = 5  # unknown parameters in a message
KNOWN = frozenset(name for names in PARAMETERS.values() for name in names)


def open_page(name: str) -> None:
    """Remember which page is shown, so that each has choices of its own, and name what its link cannot mean.

    A parameter that is too long, or of characters that cannot be shown, is taken out of the URL.

    Args:
        name: a key of PARAMETERS.
    """
    st.session_state[PAGE] = name
    _drop_unusable(name)
    unknown = [parameter for parameter in parameters() if parameter not in KNOWN]
    if unknown:
        listed = ", ".join(plain(repr(parameter[:60])) for parameter in unknown[:MOST_NAMED])
        accepted = ", ".join(PARAMETERS[name]) or "none"
        st.warning(f"Unknown in this link: {listed}. This page reads {accepted}.", icon=":material/link:")


def href(page: str) -> str:
    """Return what a browser opens for a page and its parameters, such as `lessons?lesson=dtypes`.

    The first page has no name in addresses: `explore?op=matmul` is at `./?op=matmul`.
    """
    name, question, parameters = page.partition("?")
    return f"./{'' if name == FIRST_PAGE else name}{question}{parameters}"


def address(shown: Mapping[str, str] | None = None) -> str:
    """Return the address of this page as its visitors reach it, behind a proxy or under a path too.

    Args:
        shown: its parameters; None: those of the URL that this page reads.
    """
    if shown is None:
        shown = {name: text for name, text in parameters().items() if name in PARAMETERS[current_page()]}
    base = (st.context.url or "").partition("?")[0]  # Streamlit leaves out parameters, and the first page's slash
    if base.rpartition("/")[2] not in ("", *PARAMETERS):
        base += "/"
    return f"{base}?{urlencode(shown, safe=',:=')}" if shown else base


def check(name: str, text: str) -> None:
    """Accept the value of the parameter `name`, as a link or a field of its page gives it.

    Raises:
        InvalidInput: it, or a value of its list, is too long or cannot be shown, or the list is too long.
    """
    check_text(name, text, LISTS.get(name, ""), most=MOST_RUNS if name in ("measuring", "sweep") else None)


def _drop_unusable(page: str) -> None:
    """Take what must not be used out of the URL, and name it until another page is opened: the URL has forgotten it."""
    problems = {name: problem for name, text in st.query_params.to_dict().items() if (problem := _problem(name, text))}
    for name in problems:
        del st.query_params[name]
    if problems or st.session_state.get(PROBLEMS, ("",))[0] != page:
        st.session_state[PROBLEMS] = (page, *list(problems.values())[:MOST_NAMED])
    _, *named = st.session_state[PROBLEMS]
    if named:
        listed = "".join(f"\n- {problem}" for problem in named)
        st.warning(f"Some values in this link are invalid; defaults were used:{listed}", icon=":material/link:")


def _problem(name: str, text: str) -> str | None:
    short = SHORT_NAMES.get(name, name)
    if short not in KNOWN or short == "q":  # Streamlit ties it to its field, which judges it
        return None
    try:
        check(short, text)
    except InvalidInput as error:
        return plain(str(error))
    return None


def current_page() -> str:
    """Return the page that is shown."""
    return str(st.session_state.get(PAGE, ""))


def parameters() -> dict[str, str]:
    """Return the URL's parameters under their short names."""
    return short_names(st.query_params.to_dict())


def write(name: str, value: str | None) -> None:
    """Set the URL's parameter `name`, or drop it, under whatever name it stands there; leave it where it says so."""
    if parameters().get(name) == value:
        return
    for other in [given for given in st.query_params if SHORT_NAMES.get(given, given) == name]:
        if other != name or value is None:
            del st.query_params[other]
    if value is not None:
        st.query_params[name] = value
