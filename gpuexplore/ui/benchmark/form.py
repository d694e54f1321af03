"""The request above a run: the form with its button, slow parts named before it is run; or one line of a shown run.

The form's widgets make a `Request`, which `gpuexplore.request` judges. They get their values as their defaults too, as
in `gpuexplore.ui.url_widgets`.
"""

from collections.abc import Sequence
from importlib import import_module

import streamlit as st

from gpuexplore.analysis.run.estimate import CostEstimate, check_limits, estimate
from gpuexplore.analysis.utilization.utilization import shape_label
from gpuexplore.core.errors import InvalidInput, NotFound, StoreUnavailable
from gpuexplore.core.model import ALIGNMENTS, CACHE_MODES, DATA_MODES, Device, Experiment, Result, Run
from gpuexplore.core.naming import array_conditions
from gpuexplore.core.units import format_bytes, format_seconds
from gpuexplore.operations import OPERATIONS, additions
from gpuexplore.operations.contract import Operation
from gpuexplore.recorded import recording_of_run
from gpuexplore.registry import Position, features
from gpuexplore.request import Request, from_experiment, resolve, with_defaults
from gpuexplore.ui.benchmark import settings
from gpuexplore.ui.benchmark.settings import key
from gpuexplore.ui.identity import address
from gpuexplore.ui.known_results import measured_results
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.roles import Right, check
from gpuexplore.ui.run.state import askers, fetch, is_mine
from gpuexplore.ui.run.submit import queue_and_show, start
from gpuexplore.ui.session import owner, store
from gpuexplore.ui.url_widgets import operation_title, show_problem

OPEN = "form.open"  # the session's key of the run above which the form stands open
SIZES_HELP = "A list like `64, 128, 256`, or a range: `256:8192:x2` doubles, `100:500:+100` adds."
RUNGS_HELP = "The steps of a kernel ladder can be chosen too; the page Kernels explains them."
MOST_PILLS = 6
SHAPES_HELP = (
    "Several shapes are separated by semicolons; the name of a preset is a shape too. Ranges sweep over axes, and two "
    "of them are drawn as a map: `m=64:512:x2,k=256,n=64:512:x2`."
)
PRESET = "form.preset"
LAYOUT_HELP = (
    "Memory layout of the two matrices of a product, as in BLAS: N by rows, T by columns, so `NT` computes "
    "`A @ B.T` of the stored arrays. The numbers are the same, in another order."
)
ALIGN_HELP = (
    "Alignment of a CPU's arrays: as NumPy, Numba and torch allocate them, or on 2 MiB boundaries, which makes some "
    "short calls faster. If it makes a difference, the other one is measured as well."
)
SHOWN = {"": "device's default", "library": "library's own", "pages": "2 MiB pages"}
BLOCK_HELP = "Threads per block of our CUDA kernels along x and y, like `32,8`; see the page Kernels."
REPEAT_HELP = (
    "Measure each point in this many new processes, up to 60: the interval then covers differences between them. Each "
    "takes seconds to start. Empty or 1: in the running worker."
)
BUDGET_HELP = "Seconds of sampling for each point. Sampling stops sooner once the median is known within 1 %."


def request_form(devices: Sequence[Device], shown: Request, run_id: str | None) -> Request:
    """Draw what is asked for, with a button that measures it, and return it.

    Args:
        devices: what can be measured on.
        shown: the settings of the run that is shown, or of a first visit.
        run_id: the run that is shown; None for none.
    """
    ids = [device.id for device in devices]
    as_linked = settings.current()
    if run_id and st.session_state.get(OPEN) != run_id and _in_full(as_linked, ids) == _in_full(shown, ids):
        return _folded(devices, with_defaults(shown, ids), run_id)
    request = _experiment_form(devices)
    settings.write(request, ids)
    return _with_button(devices, request)


def _in_full(request: Request, ids: Sequence[str]) -> Request:
    """Return `request` as a run of it is described: `256 1k` and `256,1024` are the same sizes."""
    try:
        return with_defaults(from_experiment(resolve(request, ids)), ids)
    except InvalidInput:
        return with_defaults(request, ids)


def _with_button(devices: Sequence[Device], request: Request) -> Request:
    """Draw the button that measures what the form contains, with how long that takes, or why it cannot be measured."""
    try:
        experiment = _checked(devices, request)
    except InvalidInput as error:
        for line in str(error).splitlines():
            st.error(plain(line), icon=":material/error:")
        st.button("Run", type="primary", disabled=True, icon=":material/play_arrow:")
        return request
    earlier = [result for device in devices if device.id in experiment.devices for result in _measured_on(device)]
    expected = estimate(experiment, devices, earlier)
    points = "1 point" if expected.cases == 1 else f"{expected.cases} points"
    button, words = st.columns([1, 4], vertical_alignment="center")
    with button:
        if st.button(f"Run {points}", type="primary", icon=":material/play_arrow:", width="stretch"):
            _measure(experiment, devices)
    words.caption(
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


def _measured_on(device: Device) -> list[Result]:
    """Return what was measured on `device` before; nothing while the database is away."""
    try:
        return [result for _, result in measured_results(device).found]
    except StoreUnavailable:
        return []


def _offer_to_leave_out(expected: CostEstimate, experiment: Experiment) -> None:
    """Name the slowest part of an experiment, where one stands out, next to buttons for the rest without it."""
    if not expected.slow:
        return
    dtype, implementation = next(iter(expected.slow))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f":material/hourglass: {expected.slow_parts[0]}.", width="content")
        _offer("dtypes", dtype, experiment.dtypes)
        _offer("implementations", implementation, experiment.implementations)


def _offer(name: str, slow: str, chosen: Sequence[str]) -> None:
    rest = [value for value in chosen if value != slow]
    if rest:
        st.button(f"Leave out {slow}", key=f"slow.{name}", on_click=_choose, args=(name, rest))


def _choose(name: str, rest: list[str]) -> None:
    st.session_state[key(name)] = rest


def _folded(devices: Sequence[Device], request: Request, run_id: str) -> Request:
    """Draw the request in one line; where it can be measured here, with a button that does so (again)."""
    experiment, problem, elsewhere = None, "", _is_of_elsewhere(run_id)
    do = "Run here" if elsewhere else "Run again"
    try:
        experiment = _checked(devices, request)
    except InvalidInput as error:
        problem = str(error)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f":small[{plain(_in_a_line(request, elsewhere=elsewhere))}]", width="stretch")
        if st.button("Edit", icon=":material/tune:"):
            st.session_state[OPEN] = run_id
            st.rerun()
        if experiment is None:
            st.button(do, icon=":material/play_arrow:", disabled=True, help=plain(problem))
        elif st.button(do, icon=":material/play_arrow:"):
            _measure(experiment, devices)
    return request


def _is_of_elsewhere(run_id: str) -> bool:
    """Return whether a run was measured on another machine or at another time: a recorded one, or an imported one."""
    try:
        run = fetch(run_id)
    except NotFound:
        return False
    return recording_of_run(run_id) is not None or bool(run.origin)


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
            _sizes()
        operation = OPERATIONS[st.session_state[key("operation")]]
        st.caption(f"{operation.formula}. {operation.about}")
        if operation.presets:
            _presets(operation)
        dtypes, implementations, on = st.columns([5, 6, 3], gap="medium")
        with dtypes:
            _pills("Dtypes", "dtypes", operation.dtypes)
        with implementations:
            _implementations(operation)
        with on:
            _pills("Devices", "devices", ids)
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


def _sizes() -> None:
    if st.session_state.get(key("shapes")):
        st.text_input("Sizes", value="", disabled=True, placeholder="exact shapes are set under Conditions")
    else:
        st.text_input("Sizes", _now("sizes"), key=key("sizes"), help=SIZES_HELP)


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


def _implementations(operation: Operation) -> None:
    """Draw the usual implementations as buttons; with the rungs of the ladders there are too many for that."""
    names = [implementation.name for implementation in operation.implementations]
    names += [name for module in additions() for name in module.offered()]
    if len(names) <= MOST_PILLS:
        _pills("Implementations", "implementations", names)
        return
    st.session_state[key("implementations")] = _still_offered("implementations", names)
    st.multiselect("Implementations", names, key=key("implementations"), help=RUNGS_HELP)


def _still_offered(name: str, options: Sequence[str]) -> list[str]:
    return [option for option in st.session_state.get(key(name), []) if option in options]


def _pills(label: str, name: str, options: Sequence[str]) -> None:
    """Draw a choice of several; what is chosen but no longer offered is dropped."""
    st.session_state[key(name)] = _still_offered(name, options)
    st.pills(label, options, selection_mode="multi", key=key(name), wrap=True)


def _conditions(devices: Sequence[Device], operation: Operation) -> None:
    cores = next((device.cores for device in devices if device.cores), None)
    cache, data, threads, budget = st.columns(4)
    with cache:
        _one_of(
            "Cache",
            "cache",
            ["", *CACHE_MODES],
            help="`cold` empties the last-level cache before each call; `both` adds the other state.",
        )
    with data:
        _one_of(
            "Data",
            "data",
            list(DATA_MODES),
            help="Zeros draw less power and inflate clocks: a GPU runs up to 15 % faster on them.",
        )
    with threads:
        st.text_input(
            "Threads",
            _now("threads"),
            key=key("threads"),
            placeholder=f"{cores}: one per core" if cores else "one per core",
            help="CPU threads.",
        )
    with budget:
        st.text_input("Budget (s)", _now("budget"), key=key("budget"), help=BUDGET_HELP)
    shapes, layout, align, block, repeat = st.columns([2, 1, 1, 1, 1])
    with shapes:
        st.text_input(
            "Exact shapes instead of sizes",
            _now("shapes"),
            key=key("shapes"),
            placeholder="m=512,k=64,n=512; m=2048,k=64,n=64",
            help=SHAPES_HELP,
        )
    with layout:
        _one_of("Layout", "layout", list(operation.layouts), help=LAYOUT_HELP)
    with align:
        _one_of("Arrays", "align", list(ALIGNMENTS), help=ALIGN_HELP)
    with block:
        st.text_input(
            "Block (threads)", _now("block"), key=key("block"), placeholder="each kernel's own", help=BLOCK_HELP
        )
    with repeat:
        st.text_input("Fresh processes", _now("repeat"), key=key("repeat"), placeholder="1", help=REPEAT_HELP)


def _one_of(label: str, name: str, options: Sequence[str], *, help: str) -> None:
    st.selectbox(
        label,
        options,
        index=_index(name, options),
        key=key(name),
        format_func=lambda option: SHOWN.get(option, option),
        help=help,
    )


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
        st.caption(f":material/group: {who} requested the same run: it {how} once for all.", width="content")
        if run.owner != owner() and st.button("Measure my own", icon=":material/play_arrow:"):
            start([run.experiment], devices, "run")


def show_offers(place: Position, devices: Sequence[Device]) -> None:
    """Show what features offer at one place of the page before something is measured, in their order."""
    for feature in features():
        if place in feature.offers:
            import_module(feature.offers[place]).offer(devices)
