"""The request above a run: the form with its button, slow parts named before it is run; or one line of a shown run.

The form's widgets make a `Request`, which `gpuexplore.request` judges. They get their values as their defaults too, as
in `gpuexplore.ui.url_widgets`.
"""

from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gpuexplore.analysis.run.estimate import CostEstimate, check_limits, estimate
from gpuexplore.analysis.utilization.utilization import shape_label
from gpuexplore.core import (
    ALIGNMENTS,
    CACHE_MODES,
    DATA_MODES,
    Device,
    Experiment,
    InvalidInput,
    NotFound,
    Run,
    StoreUnavailable,
    format_bytes,
    format_seconds,
)
from gpuexplore.core.naming import array_conditions
from gpuexplore.operations import OPERATIONS, Operation, additions
from gpuexplore.recorded import recording_of_run
from gpuexplore.registry import features
from gpuexplore.request import Request, from_experiment, resolve, with_defaults
from gpuexplore.ui.benchmark import settings
from gpuexplore.ui.benchmark.settings import key
from gpuexplore.ui.identity import address
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.roles import Right, check
from gpuexplore.ui.run.state import askers, fetch, is_mine, queue_and_show, start
from gpuexplore.ui.session import measured_results, owner, store
from gpuexplore.ui.url_widgets import operation_title, show_problem

OPEN = "form.open"  # the session's key of the run above which the form stands open
NO_RUN = "none"  # its value on a page without a run
PRESET = "form.preset"
HELP = {  # of fields, by the name that they have in a request
    "sizes": "A list like `64, 128, 256`, or a range: `256:8192:x2` doubles, `100:500:+100` adds.",
    "implementations": "The steps of a kernel ladder can be chosen too; the page Kernels explains them.",
    "shapes": "Several shapes are separated by semicolons; the name of a preset is a shape too. Ranges sweep over "
    "axes, and two of them are drawn as a map: `m=64:512:x2,k=256,n=64:512:x2`.",
    "cache": "`cold` empties the last-level cache before each call; `both` adds the other state.",
    "data": "Zeros draw less power and inflate clocks: a GPU runs up to 15 % faster on them.",
    "threads": "CPU threads.",
    "budget": "Seconds of sampling for each point. Sampling stops sooner once the median is known within 1 %.",
    "layout": "Memory layout of the two matrices of a matmul, as in BLAS: N row-major, T column-major, so `NT` "
    "computes `A @ B.T` of the stored arrays. The values are the same, stored in another order.",
    "align": "Alignment of a CPU's arrays: as NumPy, Numba and torch allocate them, or on 2 MiB boundaries, which "
    "makes some short calls faster. If the alignment matters, the other one is measured too.",
    "block": "Threads per block of our CUDA kernels along x and y, like `32,8`; see the page Kernels.",
    "repeat": "Measure each point in this many new processes, up to 60: the interval then covers differences between "
    "them. Each takes seconds to start. Empty or 1: in the running worker.",
}


def request_form(devices: Sequence[Device], shown: Request, run_id: str | None) -> Request:
    """Draw what is asked for, with a button that measures it, and return it.

    Args:
        devices: what can be measured on.
        shown: the settings of the run that is shown, or of a first visit.
        run_id: the run that is shown; None for none.
    """
    ids = [device.id for device in devices]
    as_linked = settings.current()
    is_open = st.session_state.get(OPEN) == (run_id or NO_RUN)
    if run_id and not is_open and _in_full(as_linked, ids) == _in_full(shown, ids):
        return _folded(devices, with_defaults(shown, ids), run_id)
    if not (run_id or is_open):
        return _first_line(devices, as_linked)
    request = _experiment_form(devices)
    settings.write(request, ids)
    return _with_button(devices, request, st.container())


def _first_line(devices: Sequence[Device], request: Request) -> Request:
    """Draw what would be measured in one line, with a button that opens the form and one that measures it."""
    ids = [device.id for device in devices]
    line = st.container(border=True, horizontal=True, vertical_alignment="center", gap="small")
    with line:
        st.markdown(_in_words(with_defaults(request, ids)), width="stretch")
        _offer_editing(NO_RUN)
    settings.write(request, ids)
    return _with_button(devices, request, line)


def _in_words(request: Request) -> str:
    """Return ``**Matrix multiplication** 64, 128 · fp32 · numpy, torch · cpu`` as Markdown."""
    lists = (request.sizes, request.dtypes, request.implementations, request.devices)
    what, *rest = (text.replace(",", ", ") for text in lists)
    special = {"{} cache": request.cache, "{} threads": request.threads, "block {}": request.block}
    rest += [words.format(value) for words, value in {**special, "{} processes": request.repeat}.items() if value]
    rest += [request.data] if request.data != DATA_MODES[0] else []
    rest += array_conditions(request.layout, request.align)
    return f"**{operation_title(request.operation)}** {plain(' · '.join((request.shapes or what, *rest)))}"


def _offer_editing(run_id: str) -> None:
    if st.button("Edit", icon=":material/tune:"):
        st.session_state[OPEN] = run_id
        st.rerun()


def _in_full(request: Request, ids: Sequence[str]) -> Request:
    """Return `request` as a run of it is described: `256 1k` and `256,1024` are the same sizes."""
    try:
        return with_defaults(from_experiment(resolve(request, ids)), ids)
    except InvalidInput:
        return with_defaults(request, ids)


def _with_button(devices: Sequence[Device], request: Request, line: DeltaGenerator) -> Request:
    """Draw the button that measures what the form contains, with how long that takes, or why it cannot be measured.

    Args:
        devices: what can be measured on.
        request: what the form contains.
        line: where the button stands.
    """
    try:
        experiment = _checked(devices, request)
    except InvalidInput as error:
        show_problem(error)
        line.button("Run", type="primary", disabled=True, icon=":material/play_arrow:")
        return request
    used = [device for device in devices if device.id in experiment.devices]
    earlier = []
    with suppress(StoreUnavailable):
        earlier = [result for device in used for _, result in measured_results(device).found]
    expected = estimate(experiment, devices, earlier)
    points = "1 point" if expected.cases == 1 else f"{expected.cases} points"
    if line.button(f"Run {points}", type="primary", icon=":material/play_arrow:"):
        _measure(experiment, devices)
    st.caption(
        f"{points}, about {format_seconds(expected.seconds)}, usually {format_seconds(expected.seconds_low)} to "
        f"{format_seconds(expected.seconds_high)}; the largest needs {format_bytes(expected.bytes_largest)}."
    )
    _offer_to_leave_out(expected, experiment)
    return with_defaults(from_experiment(experiment), [device.id for device in devices])


def _checked(devices: Sequence[Device], request: Request) -> Experiment:
    experiment = resolve(request, [device.id for device in devices])
    check_limits(experiment, devices)
    return experiment


def _measure(experiment: Experiment, devices: Sequence[Device]) -> None:
    """Show the run of `experiment` that another user has waiting or running, else queue one, or say why not."""

    def queued() -> Sequence[str]:
        check(Right.MEASURE)
        seconds = estimate(experiment, devices).seconds
        return [store().ask(experiment, owner(), estimated_s=seconds, address=address())]

    queue_and_show(queued, "run")


def _offer_to_leave_out(expected: CostEstimate, experiment: Experiment) -> None:
    """Name the slowest part of an experiment, where one stands out, next to buttons for the rest without it."""
    if not expected.slow:
        return
    dtype, implementation = next(iter(expected.slow))
    fields = (("dtypes", dtype, experiment.dtypes), ("implementations", implementation, experiment.implementations))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f":material/hourglass: {expected.slow_parts[0]}.", width="content")
        for name, slow, chosen in fields:
            if rest := [value for value in chosen if value != slow]:
                st.button(f"Leave out {slow}", key=f"slow.{name}", on_click=_choose, args=(name, rest))


def _choose(name: str, rest: list[str]) -> None:
    st.session_state[key(name)] = rest


def _folded(devices: Sequence[Device], request: Request, run_id: str) -> Request:
    """Draw the request in one line; where it can be measured here, with a button that does so (again)."""
    elsewhere = False  # measured on another machine or at another time: a recorded run, or an imported one
    with suppress(NotFound):
        run = fetch(run_id)
        elsewhere = recording_of_run(run_id) is not None or bool(run.origin)
    do = "Run here" if elsewhere else "Run again"
    experiment = None
    problem = ""
    try:
        experiment = _checked(devices, request)
    except InvalidInput as error:
        problem = str(error)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f":small[{plain(_in_a_line(request, elsewhere=elsewhere))}]", width="stretch")
        _offer_editing(run_id)
        if experiment is None:
            st.button(do, icon=":material/play_arrow:", disabled=True, help=plain(problem))
        elif st.button(do, icon=":material/play_arrow:"):
            _measure(experiment, devices)
    return request


def _in_a_line(request: Request, *, elsewhere: bool) -> str:
    """Return ``Matrix multiplication, 4 sizes, 3 dtypes, 3 implementations, cpu``; of elsewhere, ``here on cpu``."""
    shapes = request.shapes.split(";") if request.shapes else request.sizes.split(",")
    what = "shape" if request.shapes else "size"
    parts = [
        operation_title(request.operation),
        _counted(shapes, what),
        _counted(request.dtypes.split(","), "dtype"),
        _counted(request.implementations.split(","), "implementation"),
        f"{'here on ' if elsewhere else ''}{request.devices.replace(',', ', ')}",
        *array_conditions(request.layout, request.align),
    ]
    return ", ".join(parts)


def _counted(words: Sequence[str], what: str) -> str:
    """Return one word as it is, and how many there are of several."""
    if len(words) == 1:
        return f"{what} {words[0].strip()}" if what in ("size", "shape") else words[0].strip()
    return f"{len(words)} {what}s"


def _experiment_form(devices: Sequence[Device]) -> Request:
    """Draw the form and return what it contains."""
    ids = [device.id for device in devices]
    with st.container(border=True):
        left, right = st.columns([2, 3], gap="medium")
        with left:
            st.selectbox(
                "Operation",
                list(OPERATIONS),
                index=_index("operation", list(OPERATIONS)),
                key=key("operation"),
                format_func=operation_title,
                on_change=_renew,
                args=(ids,),
            )
        with right:
            if st.session_state.get(key("shapes")):
                st.text_input("Sizes", value="", disabled=True, placeholder="exact shapes are set under Conditions")
            else:
                _text_field("Sizes", "sizes")
        operation = OPERATIONS[st.session_state[key("operation")]]
        st.caption(f"{operation.formula}. {operation.about}")
        if operation.presets:
            _presets(operation)
        dtypes, implementations, on = st.columns([5, 6, 3], gap="medium")
        with dtypes:
            _several("Dtypes", "dtypes", operation.dtypes)
        with implementations:
            names = [implementation.name for implementation in operation.implementations]
            names += [name for module in additions() for name in module.offered()]
            _several("Implementations", "implementations", names)
        with on:
            _several("Devices", "devices", ids)
        with st.expander(
            "Conditions: cache, data, threads, budget, exact shapes, layout, arrays, block, processes",
            icon=":material/tune:",
        ):
            _conditions(devices, operation)
    return settings.current()


def _renew(ids: Sequence[str]) -> None:
    """Give a newly chosen operation its own sizes and implementations; other settings stay."""
    held = settings.current()
    if held.operation not in OPERATIONS:  # no browser of ours sends that
        show_problem(InvalidInput.of("operation", held.operation, OPERATIONS))
        return
    own = with_defaults(Request(operation=held.operation, devices=held.devices), ids)
    st.session_state[key("sizes")] = own.sizes
    st.session_state[key("shapes")] = st.session_state[key("block")] = ""
    st.session_state[key("layout")] = "NN"
    st.session_state[key("implementations")] = own.implementations.split(",")
    known = OPERATIONS[held.operation].dtypes
    st.session_state[key("dtypes")] = [word for word in held.dtypes.split(",") if word in known]


def _presets(operation: Operation) -> None:
    """Draw a choice of shapes with a name, which fills the exact shapes; it follows what stands there."""
    titles = {  # of a notebook's shape its axes: ``notebook-500-200`` says nothing
        preset.name: f"Notebook: {shape_label(preset.shape)}" if preset.name.startswith("notebook-") else preset.name
        for preset in operation.presets
    }
    st.session_state[PRESET] = shapes if (shapes := st.session_state.get(key("shapes"), "")) in titles else None
    st.pills(
        "Preset shapes",
        list(titles),
        key=PRESET,
        format_func=titles.__getitem__,
        wrap=True,
        on_change=_take_preset,
        help="\n".join(f"- `{preset.name}`: {preset.shape}. {preset.about}" for preset in operation.presets),
    )


def _take_preset() -> None:
    st.session_state[key("shapes")] = st.session_state[PRESET] or ""


def _several(label: str, name: str, options: Sequence[str]) -> None:
    """Draw a choice of several, a few of them as buttons; what is chosen but no longer offered is dropped."""
    st.session_state[key(name)] = [option for option in st.session_state.get(key(name), []) if option in options]
    if name == "implementations" and len(options) > 6:  # with the rungs of the ladders
        st.multiselect(label, options, key=key(name), help=HELP[name])
    else:
        st.pills(label, options, selection_mode="multi", key=key(name), wrap=True)


def _conditions(devices: Sequence[Device], operation: Operation) -> None:
    cores = next((device.cores for device in devices if device.cores), None)
    cache, data, threads, budget = st.columns(4)
    with cache:
        _one_of("Cache", "cache", ["", *CACHE_MODES])
    with data:
        _one_of("Data", "data", list(DATA_MODES))
    with threads:
        _text_field("Threads", "threads", f"{cores}: one per core" if cores else "one per core")
    with budget:
        _text_field("Budget (s)", "budget")
    shapes, layout, align, block, repeat = st.columns([2, 1, 1, 1, 1])
    with shapes:
        _text_field("Exact shapes instead of sizes", "shapes", "m=512,k=64,n=512; m=2048,k=64,n=64")
    with layout:
        _one_of("Layout", "layout", list(operation.layouts))
    with align:
        _one_of("Arrays", "align", list(ALIGNMENTS))
    with block:
        _text_field("Block (threads)", "block", "each kernel's own")
    with repeat:
        _text_field("Fresh processes", "repeat", "1")


def _one_of(label: str, name: str, options: Sequence[str]) -> None:
    titles = {"": "device's default", "library": "library's own", "pages": "2 MiB pages"}
    st.selectbox(
        label,
        options,
        index=_index(name, options),
        key=key(name),
        format_func=lambda option: titles.get(option, option),
        help=HELP[name],
    )


def _text_field(label: str, name: str, placeholder: str = "") -> None:
    st.text_input(label, _now(name), key=key(name), placeholder=placeholder, help=HELP[name])


def _now(name: str) -> str:
    return str(st.session_state.get(key(name), ""))


def _index(name: str, options: Sequence[str]) -> int:
    return list(options).index(_now(name)) if _now(name) in options else 0


def show_askers(run: Run, devices: Sequence[Device]) -> None:
    """Show that other users share a run; who does not own it may measure their own."""
    others = len(askers(run))
    if not others or not is_mine(run):
        return
    who = "1 other user" if others == 1 else f"{others} other users"
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        how = "is measured" if run.active else "was measured"
        st.caption(f":material/group: {who} requested the same run: it {how} once for all users.", width="content")
        if run.owner != owner() and st.button("Measure my own", icon=":material/play_arrow:"):
            start([run.experiment], devices, "run")


def show_offers() -> None:
    """Show what features offer before something is measured, in their order."""
    for feature in features():
        if feature.offer:
            import_module(feature.offer).offer()
