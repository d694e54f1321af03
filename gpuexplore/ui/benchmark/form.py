"""The form that describes an experiment: widgets in, a `Request` out; judged by `gpuexplore.request`.

Widgets get their values as their defaults too, as in `gpuexplore.ui.url_widgets`.
"""

from collections.abc import Sequence

import streamlit as st

from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import ALIGNMENTS, CACHE_MODES, DATA_MODES, Device
from gpuexplore.operations import OPERATIONS
from gpuexplore.operations.contract import Operation
from gpuexplore.operations.of_users import own_names
from gpuexplore.request import Request, with_defaults
from gpuexplore.ui.benchmark import settings
from gpuexplore.ui.benchmark.settings import key
from gpuexplore.ui.url_widgets import operation_title, show_problem

SIZES_HELP = "A list like `64, 128, 256`, or a range: `256:8192:x2` doubles, `100:500:+100` adds."
RUNGS_HELP = "The steps of a kernel ladder can be chosen too; the page Kernels explains them."
MOST_PILLS = 6
SHAPES_HELP = (
    "Several shapes are separated by semicolons; the name of a preset is a shape too. Ranges sweep over axes, and two "
    "of them are drawn as a map: `m=64:512:x2,k=256,n=64:512:x2`."
)
PRESET = "form.preset"
LAYOUT_HELP = (
    "How the two matrices of a product lie in memory, as BLAS names it: N by rows, T by columns, so `NT` computes "
    "`A @ B.T` of what is stored. The same numbers in another order."
)
ALIGN_HELP = (
    "Where a CPU's arrays lie: as NumPy, Numba and torch allocate them, or on boundaries of 2 MiB, which makes some "
    "short calls faster. Where it makes a difference, the other one is measured as well."
)
SHOWN = {"": "device's default", "library": "library's own", "pages": "2 MiB pages"}
BLOCK_HELP = "Threads per block of our CUDA kernels along x and y, like `32,8`; see the page Kernels."
REPEAT_HELP = (
    "Measure each point in so many new processes, up to 60: the interval then covers what changes between them. Each "
    "takes seconds to start. Empty or 1: in the worker that runs."
)
BUDGET_HELP = "Seconds of sampling for each point. Sampling stops sooner once the median is known within 1 %."


def experiment_form(devices: Sequence[Device]) -> Request:
    """Draw the form and return what it holds.

    Args:
        devices: what this machine can measure on.
    """
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
        dtypes, implementations, places = st.columns([5, 6, 3], gap="medium")
        with dtypes:
            _pills("Dtypes", "dtypes", operation.dtypes)
        with implementations:
            _implementations(operation)
        with places:
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
    names = [preset.name for preset in operation.presets]
    shapes = st.session_state.get(key("shapes"), "")
    st.session_state[PRESET] = shapes if shapes in names else None
    st.pills(
        "Preset shapes",
        names,
        key=PRESET,
        wrap=True,
        on_change=_take_preset,
        help="\n".join(f"- `{preset.name}`: {preset.shape}. {preset.about}" for preset in operation.presets),
    )


def _take_preset() -> None:
    st.session_state[key("shapes")] = st.session_state[PRESET] or ""


def _implementations(operation: Operation) -> None:
    """Draw the usual implementations as buttons; with the rungs of the ladders there are too many for that."""
    names = [*(implementation.name for implementation in operation.implementations), *own_names()]
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
