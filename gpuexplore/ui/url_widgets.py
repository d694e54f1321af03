"""Choices that the URL remembers: a link restores them, and a value it cannot use is named with the accepted ones.

Each widget gets its value as its default too. A browser that has not drawn a widget yet, when the next run of the page
follows, draws it with the default: without one it would be empty, and empty is what the browser would send.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gpuexplore.core import Device, GpuExploreError, InvalidInput, NotFound, in_any_case, read_length
from gpuexplore.core.dtypes import spelled
from gpuexplore.hardware import accelerator_named, near_names, readings
from gpuexplore.operations import OPERATIONS
from gpuexplore.shapes import split
from gpuexplore.ui import link
from gpuexplore.ui.markdown import plain

_where_problems_stand: ContextVar[DeltaGenerator | None] = ContextVar("where_problems_stand", default=None)


@contextmanager
def problems_in(place: DeltaGenerator) -> Iterator[None]:
    """Name what cannot be used in `place`: columns are too narrow for sentences, and popovers are closed."""
    before = _where_problems_stand.set(place)
    try:
        yield
    finally:
        _where_problems_stand.reset(before)


@contextmanager
def choices_in_a_line(label: str = "Edit") -> Iterator[tuple[DeltaGenerator, DeltaGenerator]]:
    """Draw a line whose button opens what is drawn inside; problems with it stand below the line, where they are seen.

    Yields:
        where the choices are named, and the line, for buttons at its end.
    """
    line = st.container(border=True, horizontal=True, vertical_alignment="center", gap="small")
    words = line.container(width="stretch")
    with problems_in(st.container()), line.popover(label, icon=":material/tune:"):
        yield words, line


def select(
    label: str, name: str, options: Sequence[str], *, shown: Callable[[str], str] = str, is_always_named: bool = False
) -> str:
    """Draw a select box whose value is the URL's parameter `name`; the first option is its default.

    A value that is no option any more, because another choice changed them, gives way to the default.

    Args:
        shown: what a reader sees of an option.
        is_always_named: whether the default stands in the URL too.
    """
    _restore(name, options[0], accepted=options)
    if st.session_state[_key(name)] not in options:
        st.session_state[_key(name)] = options[0]
    index = list(options).index(st.session_state[_key(name)])
    chosen: str = st.selectbox(label, options, index=index, key=_key(name), format_func=shown)
    _say_readings(name, [chosen])
    _remember(name, chosen, default="" if is_always_named else options[0])
    return chosen


def segments(
    label: str, name: str, options: Sequence[str], *, shown: Callable[[str], str] = str, labelled: bool = True
) -> str:
    """Draw a row of buttons whose value is the URL's parameter `name`; the first option is its default.

    Args:
        labelled: whether the label is seen, and not only heard.
    """
    _restore(name, options[0], accepted=options)
    if st.session_state[_key(name)] not in options:  # which another choice has changed
        st.session_state[_key(name)] = options[0]
    chosen: str = (
        st.segmented_control(
            label,
            options,
            default=st.session_state[_key(name)],
            key=_key(name),
            format_func=shown,
            required=True,
            wrap=True,
            label_visibility="visible" if labelled else "collapsed",
        )
        or options[0]
    )
    _remember(name, chosen, default=options[0])
    return chosen


def several(
    label: str, name: str, options: Sequence[str], *, default: Sequence[str], shown: Callable[[str], str] = str
) -> list[str]:
    """Draw a choice of several whose value is the URL's parameter `name`, separated by commas.

    The default takes the place of a value none of which is an option.
    """
    usual = ",".join(default)
    if _changed(name, usual):
        words = [_read(name, word, options) for word in split(link.parameters().get(name, usual))]
        unknown = [word for word in words if word not in options]
        most = 5
        problems = [_unknown(name, word, options) for word in unknown[:most]]
        if len(unknown) > most:
            problems.append(InvalidInput(f"{name}: {len(unknown) - most} more are invalid"))
        usable = [word for word in dict.fromkeys(words) if word in options]
        _use_instead(name, usable or (list(default) if unknown else []), problems)
    _say_refused(name)
    now = [word for word in st.session_state[_key(name)] if word in options]
    chosen: list[str] = st.multiselect(label, options, default=now, key=_key(name), format_func=shown)
    _say_readings(name, chosen)
    _remember(name, ",".join(chosen), default=usual)
    return chosen


def text(label: str, name: str, default: str, *, help: str, placeholder: str = "") -> str:
    """Draw a text field whose value is the URL's parameter `name`."""
    _restore(name, default)
    now = st.session_state[_key(name)]
    typed: str = st.text_input(label, now, key=_key(name), help=help, placeholder=placeholder)
    return _take(name, typed, default=default)


def toggle(label: str, name: str, *, help: str) -> bool:
    """Draw a switch, off by default; the URL's parameter `name` is `yes` where it is on."""
    _restore(name, "", accepted=("yes",))
    st.session_state[_key(name)] = st.session_state[_key(name)] in ("yes", True)
    chosen: bool = st.toggle(label, st.session_state[_key(name)], key=_key(name), help=help)
    _remember(name, "yes" if chosen else "", default="")
    return chosen


def slider(label: str, name: str, most: int, default: int) -> int:
    """Draw a slider of whole numbers from 1 to `most`, at least 2, whose value is the URL's parameter `name`.

    A value that is too large, because another choice changed `most`, gives way to the default.
    """
    number = _restore_number(name, most, default)
    chosen: int = st.slider(label, 1, most, number, key=_key(name))
    _remember(name, str(chosen), default=str(default))
    return chosen


def powers(label: str, name: str, most: int, default: int, *, help: str) -> int:
    """Draw a slider of powers of two up to `most`, whose value is the URL's parameter `name`.

    The default and a value of the link are among them, whatever they are.
    """
    number = _restore_number(name, 10**7, default)
    steps = sorted({*(2**power for power in range(most.bit_length())), default, number})
    chosen: int = st.select_slider(label, steps, number, key=_key(name), help=help, format_func="{:,}".format)
    _remember(name, str(chosen), default=str(default))
    return chosen


def _restore_number(name: str, most: int, default: int) -> int:
    """Take the URL's number, or the default, where one of them was changed from outside; return the value."""
    from_outside = _changed(name, str(default))
    given = link.parameters().get(name, str(default)) if from_outside else str(st.session_state[_key(name)])
    number = read_length(given)
    problems = []
    if number is None or not 1 <= number <= most:
        problems.append(InvalidInput.of(name, given, f"whole numbers from 1 to {most:,}"))
        number = default
    if from_outside:
        _use_instead(name, number, problems)
    st.session_state[_key(name)] = number
    _say_refused(name)
    return number


def lines(label: str, name: str, default: str, *, help: str) -> str:
    """Draw a field of several lines whose value is the URL's parameter `name`, where ``;`` separates them."""
    _restore(name, default)
    typed: str = st.text_area(label, st.session_state[_key(name)], key=_key(name), help=help) or ""
    return _take(name, typed, default=default)


def operation(*first: str) -> str:
    """Draw the choice of an operation; `first` are other answers, the first of which is the default."""
    return select("Operation", "op", [*first, *OPERATIONS], shown=operation_title)


def operation_title(name: str) -> str:
    """Return what a reader sees of an operation, or of another answer to which one."""
    return OPERATIONS[name].title if name in OPERATIONS else name.capitalize()


def device(devices: Sequence[Device], label: str = "On") -> Device:
    """Draw the choice of one of this server's devices, the first of which is the default; of one there is no choice."""
    by_id = {device.id: device for device in devices}
    return devices[0] if len(devices) == 1 else by_id[select(label, "device", list(by_id))]


def shape(default: str) -> str:
    """Draw the field of a shape."""
    return text(
        "Shape",
        "shape",
        default,
        help="A size like `4096`, exact axes like `m=4096,k=64,n=4096`, or the name of a preset.",
    )


def forget(*names: str) -> None:
    """Give the choices `names` their defaults again: what they meant is no longer there."""
    for name in names:
        link.write(name, None)
        st.session_state.pop(_key(name), None)


def is_usable(name: str, typed: str) -> bool:
    """Return whether a link may contain what was typed as the parameter `name`; where not, show why."""
    try:
        link.check(name, typed)
    except InvalidInput as error:
        show_problem(error)
        return False
    return True


def show_problem(error: GpuExploreError) -> None:
    """Show what cannot be used, and what would be accepted."""
    place = _where_problems_stand.get() or st
    for line in str(error).splitlines():
        place.error(plain(line), icon=":material/error:")


def show_missing(error: NotFound) -> None:
    """Show that what a link names is not on this server."""
    st.warning(f"{plain(str(error))}. The link may come from another server.", icon=":material/link_off:")


def read_as(name: str, value: str, reading: str) -> None:
    """Put what the parameter `name` means as its value, and say so next to its widget as long as that is chosen."""
    st.session_state.setdefault(f"{_key(name)}.readings", {})[value] = (reading,)
    link.write(name, value)


def _read(name: str, given: str, accepted: Sequence[str]) -> str:
    """Return what a text like `h100`, `float16` or `AdamW` stands for, where such are chosen from."""
    known = given if given in accepted else in_any_case(spelled(given), accepted)
    if known in accepted:
        return known
    row = accelerator_named(given, among=accepted)
    if row is None:
        return given
    st.session_state.setdefault(f"{_key(name)}.readings", {})[row.key] = readings([given])
    return row.key


def _say_readings(name: str, chosen: Sequence[str]) -> None:
    """Say how names of the link were read, as long as what they were read as is chosen."""
    for key, read in st.session_state.get(f"{_key(name)}.readings", {}).items():
        if key in chosen:
            (_where_problems_stand.get() or st).caption(plain("; ".join(read)))


def _unknown(name: str, given: str, accepted: Sequence[str]) -> InvalidInput:
    """Return the refusal of a value, with the accepted ones and, where GPUs are chosen from, those near to it."""
    named = [option for option in accepted if option]  # an empty one is the default, which no link names
    listed = ", ".join(named) if len(named) < 40 else "a name in the list below"
    return InvalidInput.of(name, given, f"{listed or 'none here'}{near_names(given, among=accepted)}")


def _key(name: str) -> str:
    """Return the session key of a widget: each page has its own, for what one accepts another may not."""
    return f"{link.current_page()}.{name}"


def _seen(name: str) -> str:
    return f"{_key(name)}.seen"


def _changed(name: str, default: str) -> bool:
    """Return, once, whether the URL was changed from outside, a link or back and forward, or the default it stands for.

    A choice that the URL names stays when another choice brings another default.
    """
    given = link.parameters().get(name)
    seen_given, seen_default = st.session_state.get(_seen(name), (None, None))
    st.session_state[_seen(name)] = (given, default)
    return _key(name) not in st.session_state or given != seen_given or (given is None and default != seen_default)


def _restore(name: str, default: str, accepted: Sequence[str] | None = None) -> None:
    """Take the URL's value, or the default, where one of them was changed from outside."""
    if _changed(name, default):
        given = link.parameters().get(name)
        problems = []
        if given is not None and accepted is not None:
            given = _read(name, given, accepted)
            if given not in accepted:
                problems.append(_unknown(name, given, accepted))
                given = None
        _use_instead(name, default if given is None else given, problems)
    _say_refused(name)


def _use_instead(name: str, value: object, problems: Sequence[InvalidInput]) -> None:
    """Take a value, in place of what the link has for `name` where that cannot be used."""
    st.session_state[_key(name)] = value
    st.session_state[f"{_key(name)}.refused"] = (value, *problems)


def _say_refused(name: str) -> None:
    """Name what of the link cannot be used, as long as nothing else is chosen: a page may redraw itself at once."""
    value, *problems = st.session_state[f"{_key(name)}.refused"]
    if st.session_state[_key(name)] != value:
        problems = []
        st.session_state[f"{_key(name)}.refused"] = (None,)
    for problem in problems:
        show_problem(problem)


def _take(name: str, typed: str, *, default: str) -> str:
    """Return what was typed, and remember it; the default for what no link may contain."""
    if not is_usable(name, typed):
        return default
    _remember(name, typed, default=default)
    return typed


def _remember(name: str, value: str, *, default: str) -> None:
    """Write a choice to the URL, unless it says so already: each change would cost a press of the browser's Back."""
    if link.parameters().get(name, default) != value:
        link.write(name, None if value == default else value)
    st.session_state[_seen(name)] = (link.parameters().get(name), default)
