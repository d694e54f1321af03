"""Goals: what a class is asked to reach, in one sentence, and whether a run reached it, judged by the run alone."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Literal
from urllib.parse import urlencode

from gpuexplore.analysis.model import AnalyzedResult, RunAnalysis
from gpuexplore.analysis.run.summary import is_memory_bound
from gpuexplore.analysis.utilization import is_plausible, is_ranked, size_of
from gpuexplore.core import (
    InvalidInput,
    check_characters,
    check_known,
    format_percent,
    format_seconds,
    read_number,
    whole_typed,
)
from gpuexplore.core.dtypes import DTYPES, dtype_named
from gpuexplore.operations import OPERATIONS, operation_named

LONGEST = 40  # characters of a setting
GPU = "gpu"  # a side of a comparison that is any GPU


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of a goal.

    Attributes:
        name: its key.
        title: its label.
        default: what a form begins with.
        read: returns it in one form, or raises InvalidInput.
        choices: the only ones there are; empty for text.
    """

    name: str
    title: str
    default: str
    read: Callable[[str], str]
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GoalKind:
    """A kind of goals.

    Attributes:
        name: its key.
        title: what it is called.
        sentence: what a class reads, with the settings in braces.
        settings: what has to be said to set one.
        rule: yields what results of a run are worth for a goal of the kind.
        better: which of two values is.
        is_guessed: whether participants guess the time of a call first.
    """

    name: str
    title: str
    sentence: str
    settings: tuple[Setting, ...]
    rule: Callable[["Goal", RunAnalysis], Iterator["GoalScore"]]
    better: Literal["higher", "lower"]
    is_guessed: bool = False


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal of a class: a kind with its settings."""

    kind: GoalKind
    settings: Mapping[str, str]

    @property
    def sentence(self) -> str:
        """The text shown to the class."""
        return self.kind.sentence.format_map(self.settings)

    @property
    def link(self) -> str:
        """The page that measures it, filled in, such as `benchmark?op=matmul&dtype=fp32`."""
        names = {"op": "operation", "dtype": "dtype", "size": "size", "impl": "implementation"}
        given = {parameter: self.settings[name] for parameter, name in names.items() if name in self.settings}
        return f"benchmark?{urlencode(given)}"


def goal_of(kind: str, settings: Mapping[str, str]) -> Goal:
    """Return the goal that was set.

    Raises:
        InvalidInput: no such kind or setting, or a value that cannot be used; says what is accepted.
    """
    check_known("kind of goal", kind, KINDS)
    known = {setting.name: setting for setting in KINDS[kind].settings}
    for name in settings:
        check_known(f"setting of {kind}", name, known)
    read = {name: setting.read(settings.get(name, setting.default).strip()) for name, setting in known.items()}
    if "implementation" in read:
        operation_named(read["operation"]).implementation_named(read["implementation"])
    return Goal(KINDS[kind], MappingProxyType(read))


def _operation(text: str) -> str:
    return operation_named(text).name


def _dtype(text: str) -> str:
    return dtype_named(text).name


def _size(text: str) -> str:
    return str(whole_typed("size", text, 1 << 24))


def _percent(text: str) -> str:
    percent = read_number(text)
    if percent is None or not 0 < percent <= 1000:
        raise InvalidInput.of("percent", text, "numbers above 0, up to 1000")
    return f"{percent:g}"


def _bound(text: str) -> str:
    bound = read_number(text)
    if bound is None or not 0 < bound < 1:
        raise InvalidInput.of("bound", text, "numbers between 0 and 1, like 1e-4")
    return f"{bound:g}"


def _side(text: str) -> str:
    check_characters("side of the comparison", text)
    if not text or len(text) > LONGEST or any(not sign.isalnum() and sign not in "_:-" for sign in text):
        raise InvalidInput.of("side of the comparison", text, f"cpu, {GPU} and names of implementations")
    return text


# Whether a run reaches a goal: results that cannot be true count for nothing.


@dataclass(frozen=True, slots=True)
class GoalScore:
    """The score of a run for a goal.

    Attributes:
        value: what the goal is about, a fraction, seconds, a size or an error.
        passed: whether it reaches the goal.
        said: the value for a reader.
    """

    value: float
    passed: bool
    said: str


def judge(goal: Goal, analysis: RunAnalysis) -> GoalScore | None:
    """Return the best that a run reaches of a goal; None where nothing in it is about it."""
    found = list(goal.kind.rule(goal, analysis))
    return (min if goal.kind.better == "lower" else max)(found, key=lambda score: score.value) if found else None


def _about(goal: Goal, analysis: RunAnalysis) -> Iterator[AnalyzedResult]:
    """Yield the results that a goal is about: of several samples, and not proved wrong by a limit of their device."""
    settings = goal.settings
    for analyzed in analysis.results:
        case = analyzed.case
        fits = case.operation == settings["operation"] and case.dtype == settings["dtype"]
        fits = fits and settings.get("size", str(size_of(case))) == str(size_of(case))
        fits = fits and settings.get("implementation", case.implementation) == case.implementation
        timed = goal.kind.name != "error"  # which rests on no clock
        if fits and analyzed.measurement is not None and (is_ranked if timed else is_plausible)(analyzed.result):
            yield analyzed


def _share(goal: Goal, analysis: RunAnalysis) -> Iterator[GoalScore]:
    by_memory = is_memory_bound(analysis)
    for analyzed in _about(goal, analysis):
        share = analyzed.default_bandwidth_utilization if by_memory else analyzed.default_mfu
        if share is not None:
            yield GoalScore(share, share >= _fraction(goal), f"{format_percent(share)} of the limit")


def _guess(goal: Goal, analysis: RunAnalysis) -> Iterator[GoalScore]:
    for analyzed in _about(goal, analysis):
        if analyzed.median_s is not None:
            yield GoalScore(analyzed.median_s, True, format_seconds(analyzed.median_s))


def _kernel(goal: Goal, analysis: RunAnalysis) -> Iterator[GoalScore]:
    """Yield the rate of each kernel of ours as a share of the fastest library's on its device in the same run."""
    found = list(_about(goal, analysis))
    for analyzed in found:
        rivals = [
            other.median_s
            for other in found
            if other.case.device == analyzed.case.device and other.implementation.calls_library and other.median_s
        ]
        if not analyzed.implementation.calls_library and rivals and analyzed.median_s:
            share = min(rivals) / analyzed.median_s
            said = f"{analyzed.case.implementation}, {format_percent(share)} of the library's rate"
            yield GoalScore(share, share >= _fraction(goal), said)


def _error(goal: Goal, analysis: RunAnalysis) -> Iterator[GoalScore]:
    for analyzed in _about(goal, analysis):
        accuracy = analyzed.result.accuracy
        if accuracy is not None and accuracy.relative_error is not None:
            error = accuracy.relative_error
            yield GoalScore(error, error < float(goal.settings["bound"]), f"relative error {error:.1e}")


def _overtake(goal: Goal, analysis: RunAnalysis) -> Iterator[GoalScore]:
    """Yield each size at which the other side is ahead for the first time, if the size before is near enough."""
    times = {side: _times(goal, analysis, side) for side in ("slower", "faster")}
    for before, size in pairwise(sorted(times["slower"].keys() & times["faster"].keys())):
        if (times["faster"][before] >= times["slower"][before]) and (times["faster"][size] < times["slower"][size]):
            # Sizes further apart leave open where between them one overtakes the other.
            yield GoalScore(size, size / before <= 2.0, f"between sizes {before:,} and {size:,}")


def _times(goal: Goal, analysis: RunAnalysis, side: str) -> Mapping[int, float]:
    """Return the shortest time of one side, by size."""
    times: dict[int, float] = {}
    for analyzed in _about(goal, analysis):
        size = size_of(analyzed.case)
        if size is not None and analyzed.median_s and _is_of_side(analyzed, goal.settings[side]):
            times[size] = min(analyzed.median_s, times.get(size, analyzed.median_s))
    return times


def _is_of_side(analyzed: AnalyzedResult, side: str) -> bool:
    kind = analyzed.device.kind if analyzed.device else analyzed.case.device.partition(":")[0]
    return side in (analyzed.case.implementation, analyzed.case.device, kind) or (side == GPU and kind != "cpu")


def _fraction(goal: Goal) -> float:
    return float(goal.settings["percent"]) / 100


_SETTINGS = {
    setting.name: setting
    for setting in (
        Setting("operation", "Operation", "matmul", _operation, tuple(OPERATIONS)),
        Setting("dtype", "Dtype", "fp32", _dtype, tuple(DTYPES)),
        Setting("size", "Size", "1024", _size),
        Setting("implementation", "Implementation", "torch", str),
        Setting("slower", "Faster at small sizes", "cpu", _side),
        Setting("faster", "Faster at large sizes", GPU, _side),
        Setting("bound", "Relative error below", "1e-4", _bound),
        Setting("percent", "Percent", "50", _percent),
    )
}


def _settings(*names: str) -> tuple[Setting, ...]:
    return tuple(_SETTINGS[name] for name in names)


KINDS: Mapping[str, GoalKind] = {
    kind.name: kind
    for kind in (
        GoalKind(
            "share",
            "Reach a share of the limit",
            "Reach {percent} % of the limit with {operation} in {dtype}",
            _settings("operation", "dtype", "percent"),
            _share,
            better="higher",
        ),
        GoalKind(
            "overtake",
            "Find the break-even size",
            "{operation} in {dtype}: from which size is {faster} faster than {slower}?",
            _settings("operation", "dtype", "slower", "faster"),
            _overtake,
            better="lower",
        ),
        GoalKind(
            "guess",
            "Guess, then measure",
            "How long does {implementation} take for {operation} of size {size} in {dtype}?",
            _settings("operation", "size", "dtype", "implementation"),
            _guess,
            better="lower",
            is_guessed=True,
        ),
        GoalKind(
            "kernel",
            "Find the fastest kernel of a ladder",
            "Which of our kernels of {operation} in {dtype} reaches {percent} % of the library's rate at size {size}?",
            _settings("operation", "size", "dtype", "percent"),
            _kernel,
            better="higher",
        ),
        GoalKind(
            "error",
            "Keep the error below a bound",
            "Compute {operation} in {dtype} with a relative error below {bound}",
            _settings("operation", "dtype", "bound"),
            _error,
            better="lower",
        ),
    )
}
