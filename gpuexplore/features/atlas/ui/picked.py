"""One point of the atlas: every figure with its unit, who measured it and how, its source, and where to go from it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from urllib.parse import urlencode

import streamlit as st

from gpuexplore.analysis.prediction import (
    CALLS,
    Calibration,
    Calls,
    Conditions,
    Prediction,
    calibrate,
    predict,
    predict_each,
)
from gpuexplore.analysis.utilization.utilization import shape_label
from gpuexplore.core import InvalidInput, Options, Shape, format_interval, format_percent, format_seconds, once
from gpuexplore.core.dtypes import FORMATS, format_named
from gpuexplore.features.atlas.analysis import (
    MOST_GPUS,
    USUAL_GPUS,
    AtlasPoint,
    measured_gpus,
    measured_operations,
    points,
    usual_calls,
)
from gpuexplore.features.atlas.analysis.answers import case_of, line, shapes_between, work_of
from gpuexplore.features.atlas.chart import SHOWN, AtlasSeries, Show, point_id, rate_words
from gpuexplore.hardware import ACCELERATORS, as_device
from gpuexplore.operations import OPERATIONS, operation_named
from gpuexplore.shapes import parse_shape
from gpuexplore.ui import url_widgets
from gpuexplore.ui.link import href, parameters, write
from gpuexplore.ui.markdown import plain, small
from gpuexplore.ui.shared import Shared

# What the atlas is asked: an operation, dtypes, GPUs, what is drawn, and a shape; all of it in the URL.


NAMES = {row.key: row.name for row in ACCELERATORS}
MOST_SERIES = 7  # as many colours as the theme has


@dataclass(frozen=True, slots=True)
class AtlasChoice:
    """The choices of a visitor.

    Attributes:
        operation: its name.
        shown: dtype and GPU of what is drawn, by their names, each once: at most MOST_SERIES.
        show: what is drawn upwards.
        calls: how calls follow one another where they are predicted.
        shape: the one in question.
    """

    operation: str
    shown: tuple[tuple[str, str], ...]
    show: Show
    calls: Calls
    shape: Shape

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes that are drawn."""
        return tuple(dict.fromkeys(dtype for dtype, _ in self.shown))

    @property
    def gpus(self) -> tuple[str, ...]:
        """The GPUs that are drawn."""
        return tuple(dict.fromkeys(gpu for _, gpu in self.shown))


def choose() -> AtlasChoice:
    """Draw the choices and return them."""
    with url_widgets.choices_in_a_line() as (words, _):
        operation = choose_operation()
        usual = usual_dtype(operation)
        dtypes = url_widgets.several("Dtypes", "dtype", dtypes_of(operation), default=(usual,)) or [usual]
        counts = measured_gpus(operation)
        default = _usual_gpus(operation, tuple(dtypes))
        gpus = url_widgets.several("GPUs", "gpus", list(counts), default=default, shown=NAMES.__getitem__)
        shown = [(dtype, gpu) for dtype in dtypes for gpu in gpus or default]
        if len(shown) > MOST_SERIES:
            accepted = f"at most {MOST_SERIES} combinations of GPU and dtype; only the first are shown"
            url_widgets.show_problem(InvalidInput.of("gpus and dtype", f"{len(shown)} of them", accepted))
        found = points(operation, gpus or default, dtypes)
        labels = {str(name): label for name, label in SHOWN.items()}
        show = url_widgets.segments("Show", "show", list(labels), shown=labels.__getitem__)
        left, right = st.columns(2, gap="medium")
        with left:
            calls = choose_calls(found)
        with right:
            shape = choose_shape(operation, usual_shape(operation, found))
    parts = (shape_label(shape), ", ".join(dtypes), ", ".join(NAMES[gpu] for gpu in gpus or default), labels[show])
    words.markdown(f"**{operation_named(operation).title}** {plain(' · '.join(parts))}")
    return AtlasChoice(
        operation,
        tuple(shown[:MOST_SERIES]),
        next(name for name in SHOWN if name == show),
        calls,
        shape,
    )


def usual_shape(operation: str, of: Sequence[AtlasPoint]) -> Shape:
    """Return the shape that most of these points' GPUs have in common, of several one with much work."""
    gpus = Counter(shape for shape, *_ in {(point.shape, point.spec_key, point.dtype) for point in of})
    if not gpus:
        contract = operation_named(operation)
        return contract.shape_of_size(contract.default_sizes[-1])
    works = {point.shape: point.work for point in of}
    shared = sorted((shape for shape in gpus if gpus[shape] == max(gpus.values())), key=works.__getitem__)
    return shared[int(0.75 * len(shared))]  # three quarters have less work


@once
def _usual_gpus(operation: str, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the most measured GPU of each architecture, the newest architectures first."""
    counts = Counter(point.spec_key for point in points(operation, dtypes=dtypes))
    best: dict[str, str] = {}
    for row in sorted(ACCELERATORS, key=lambda row: (-counts[row.key], -(row.release_year or 0))):
        if counts[row.key]:
            best.setdefault(row.architecture, row.key)
    years = {row.key: row.release_year or 0 for row in ACCELERATORS}
    return tuple(sorted(best.values(), key=lambda key: -years[key])[:MOST_GPUS]) or USUAL_GPUS


@once
def usual_dtype(operation: str) -> str:
    """Return the dtype in which most GPUs were measured, of several the one with most measurements."""
    found = points(operation)
    gpus = Counter(dtype for dtype, _ in {(point.dtype, point.spec_key) for point in found})
    counts = Counter(point.dtype for point in found)
    return max(counts, key=lambda name: (gpus[name], counts[name]), default="fp32")


@once
def dtypes_of(operation: str) -> tuple[str, ...]:
    """Return the formats that an operation has a meaning in."""
    return tuple(name for name in FORMATS if operation_named(operation).unsupported(format_named(name)) is None)


def choose_operation() -> str:
    """Draw the choice of an operation, and return its name."""
    return url_widgets.select("Operation", "op", list(measured_operations()), shown=_counted)


def choose_calls(found: Sequence[AtlasPoint]) -> Calls:
    """Draw the choice of how predicted calls follow one another, as those of `found` first, and return it."""
    chosen = url_widgets.select(
        "Predicted calls",
        "calls",
        sorted(CALLS, key=lambda name: name != usual_calls(found)),
        shown={
            "graph": "In a CUDA graph",
            "queued": "Queued",
            "single": "One at a time",
            "cold": "Cold kernel",
        }.__getitem__,
    )
    return next(name for name in CALLS if name == chosen)


def choose_shape(operation: str, usual: Shape) -> Shape:
    """Draw the field of a shape, and return what it says; `usual` where it cannot be read."""
    typed = url_widgets.shape(str(usual))
    try:
        return parse_shape(typed, OPERATIONS[operation], measured=False)
    except InvalidInput as error:
        url_widgets.show_problem(error)
        return usual


def _counted(operation: str) -> str:
    """Return an operation's title with the number of its measurements."""
    count = measured_operations()[operation]
    return (
        f"{OPERATIONS[operation].title} ({count:,} measured)" if count else f"{OPERATIONS[operation].title} (predicted)"
    )


# What the atlas knows of a choice: measured points, predicted lines, and the prediction of the shape in question.


@dataclass(frozen=True, slots=True, eq=False)
class AtlasFacts:
    """The data of a choice, shared by all visitors with the same choice.

    Attributes:
        points: measured, of what is drawn.
        series: what is drawn, with its line.
        at: the work of the shape in question.
        predictions: of that shape, in the order of the series.
    """

    points: tuple[AtlasPoint, ...]
    series: tuple[AtlasSeries, ...]
    at: int
    predictions: tuple[Prediction, ...]


FACTS: Shared[AtlasFacts] = Shared(100)
CALIBRATIONS: Shared[Calibration] = Shared(1)


def facts_of(choice: AtlasChoice) -> AtlasFacts:
    """Return what is known of a choice."""
    return FACTS.get((choice.operation, choice.shown, choice.calls, choice.shape), lambda: _facts(choice))


def calibration() -> Calibration:
    """Return what predictions of the atlas rest on: what comes with the app, and nothing of this machine."""
    return CALIBRATIONS.get((), calibrate)


def _facts(choice: AtlasChoice) -> AtlasFacts:
    found = [
        point
        for point in points(choice.operation, choice.gpus, choice.dtypes)
        if (point.dtype, point.spec_key) in choice.shown
    ]
    devices = {row.key: as_device(row) for row in ACCELERATORS if row.key in choice.gpus}
    cases = {
        (dtype, gpu): [
            case_of(choice.operation, shape, dtype, devices[gpu])
            for shape in (choice.shape, *_shapes(choice, dtype, found))
        ]
        for dtype, gpu in choice.shown
    }
    asked = [(case, devices[gpu]) for (_, gpu), some in cases.items() for case in some]
    answers = iter(predict_each(asked, calibration(), Conditions(choice.calls)))  # at once, which is faster
    predictions = {shown: tuple(islice(answers, len(some))) for shown, some in cases.items()}
    series = tuple(
        AtlasSeries(NAMES[gpu] if len(choice.dtypes) == 1 else f"{NAMES[gpu]} · {dtype}", gpu, dtype, line(each[1:]))
        for (dtype, gpu), each in predictions.items()
    )
    at = work_of(choice.operation, choice.dtypes[0])(choice.shape)
    return AtlasFacts(tuple(found), series, at, tuple(each[0] for each in predictions.values()))


def _shapes(choice: AtlasChoice, dtype: str, found: Sequence[AtlasPoint]) -> tuple[Shape, ...]:
    """Return the shapes of a line: as far as what was measured, else from a part to a multiple of the one asked for."""
    at = work_of(choice.operation, dtype)(choice.shape)
    count = max(9, min(25, 64 // len(choice.shown)))  # 64 calls of all lines together are enough
    works = [at, *(point.work for point in found)] if found else [share * at for share in (1e-3, 10.0)]
    return shapes_between(choice.operation, choice.shape, dtype, (min(works), max(works)), count=count)


POINT = "point"  # the link's parameter
PREDICTIONS: Shared[Prediction] = Shared(300)


def show_picked() -> None:
    """Show the point that the link names; nothing where it names none."""
    name = parameters().get(POINT)
    if not name:
        return
    point = _points_by_id().get(name)
    if point is None:
        st.warning(
            f"This version's atlas has no point {plain(repr(name))}: click another one.", icon=":material/link_off:"
        )
        return
    with st.container(border=True):
        title = operation_named(point.operation).title
        with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
            st.markdown(
                f"**{plain(point.device.name)}** · {title}, {shape_label(point.shape)}, {point.dtype}", width="content"
            )
            st.button(
                "Close", icon=":material/close:", type="tertiary", key="atlas.close", on_click=write, args=(POINT, None)
            )
        case = case_of(point.operation, point.shape, point.dtype, point.device)
        case = replace(case, options=Options(cache="cold" if point.cold else None))
        found = PREDICTIONS.get((case, point.call), lambda: predict(case, point.device, calibration(), point.call))
        with st.container(horizontal=True, gap="large"):
            st.metric("Measured time", format_seconds(point.time_s), width="content")
            st.metric("Rate", rate_words(point.operation, point.rate), width="content")
            st.metric(
                "Of the peak",
                format_percent(point.share) if point.share is not None else "unknown",
                help="Share of the compute peak, or of the memory bandwidth where that is the limit and no cache holds "
                "the data",
                width="content",
            )
            st.metric(
                "Predicted time",
                format_seconds(found.time_s),
                help=f"With the vendor's library; 90 % interval {format_interval(found.interval_s, format_seconds)}, "
                f"from {found.basis}; calls {CALLS[point.calls]}",
                width="content",
            )
        st.markdown(small(_citation(point)))
        with st.container(horizontal=True, gap="small"):
            st.link_button("Open the source", href_of(point), icon=":material/open_in_new:", type="primary")
            st.button(
                "Use its shape",
                icon=":material/straighten:",
                key="atlas.use",
                on_click=write,
                args=("shape", str(point.shape)),
            )
            for label, page in _ways_of(point).items():
                st.link_button(label, page)


@once
def _points_by_id() -> Mapping[str, AtlasPoint]:
    """Return every point by what a link calls it."""
    return {point_id(point): point for point in points()}


def href_of(point: AtlasPoint) -> str:
    """Return what opens the source of a point: its file on the web, or its recorded run."""
    return point.url or href(f"benchmark?run={point.run_id}")


def _ways_of(point: AtlasPoint) -> Mapping[str, str]:
    """Return the pages that show the same call or device, by what their links are called."""
    here = {"op": point.operation, "device": point.spec_key}
    same = {**here, "shape": str(point.shape), "baseline": point.dtype}
    roofs = {peak.dtype for peak in point.device.peaks}
    ways = {
        "Dtype what-if": f"what-if?{urlencode(same)}",
        "Roofline": f"roofline?{urlencode({**here, 'dtype': point.dtype} if point.dtype in roofs else here)}",
    }
    if point.run_id:
        ways["Compare with"] = f"compare?{urlencode({'a': point.run_id})}"
    return {label: href(page) for label, page in ways.items()}


def _citation(point: AtlasPoint) -> str:
    """Return who measured it, how and under which licence, as Markdown."""
    cited = point.citation
    whose = (
        f"Recorded by gpuexplore, {plain(cited.text)}"
        if point.origin == "recorded"
        else f"Published by **{plain(cited.name)}**, not measured by gpuexplore"
    )
    cite = "" if point.origin == "recorded" else f" Cite: {plain(cited.text)}."
    timed = f"{plain(point.conditions)}; calls {plain(CALLS[point.calls])}"
    return f"{whose}. Licence: {cited.licence}. Timed: {timed}.{cite}"
