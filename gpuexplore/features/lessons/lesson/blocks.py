"""The closed set of blocks of a lesson: what each may say, and what it must."""

import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from importlib import import_module
from types import MappingProxyType
from typing import Any, get_args, get_type_hints

from gpuexplore.analysis.figure import (
    BANDWIDTH,
    INTENSITY,
    PLAIN,
    RATE,
    SIZE,
    TIME,
    WORK,
    LessonFigure,
    Undefined,
    exact,
    format_figure,
    format_with_interval,
)
from gpuexplore.analysis.prediction.calls import USUAL_CALLS
from gpuexplore.core.errors import InvalidInput, NotFound, check_known, require
from gpuexplore.features.lessons.lesson.expression import (
    FACTS,
    OUTCOMES,
    UNIT_NAMES,
    Expression,
    StepNames,
    evaluate,
    parse,
)
from gpuexplore.registry import Feature, features

# Text of a lesson: Markdown without HTML, with figures in double braces, like ``{{ time(size=512) }}``.


@dataclass(frozen=True, slots=True)
class Prose:
    """Markdown in pieces: text, and expressions whose figures stand between them, each with its interval or not."""

    pieces: tuple[str | tuple[Expression, bool], ...]

    @classmethod
    def of(cls, text: str) -> "Prose":
        """Return `text` with its figures found.

        Raises:
            InvalidInput: it contains HTML, or a figure that is no expression.
        """
        if found := re.search(r"<[A-Za-z/!?][^\n]{0,40}", text):
            raise InvalidInput.of("text", found.group(), "Markdown without HTML")
        parts = re.split(r"\{\{([^{}]*)\}\}", text.strip())
        if any("{{" in part or "}}" in part for part in parts[::2]):
            raise InvalidInput.of("text", text.strip()[:60], "figures in double braces, like {{ time(size=512) }}")
        pieces: list[str | tuple[Expression, bool]] = []
        for index, part in enumerate(parts):
            figure = part.strip()  # with ± behind it its interval is said too
            pieces.append((parse(figure.removesuffix("±")), figure.endswith("±")) if index % 2 else part)
        return cls(tuple(pieces))

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The expressions of its figures."""
        return tuple(piece[0] for piece in self.pieces if not isinstance(piece, str))

    def said(self, names: StepNames) -> str:
        """Return the text with its figures; a dash where one was not measured, or has no value."""
        return "".join(piece if isinstance(piece, str) else _said(*piece, names) for piece in self.pieces)

    def is_known(self, names: StepNames) -> bool:
        """Return whether each of its figures was measured or can be computed."""
        try:
            for expression in self.expressions:
                evaluate(expression, names)
        except (NotFound, Undefined):
            return False
        return True

    @property
    def blank(self) -> str:
        """The text with a gap for each figure, as it is printed before anything was measured."""
        return "".join(piece if isinstance(piece, str) else "____" for piece in self.pieces)


def _said(expression: Expression, with_interval: bool, names: StepNames) -> str:
    try:
        value = evaluate(expression, names)
        if isinstance(value, LessonFigure):
            return format_with_interval(value) if with_interval else format_figure(value)
        if isinstance(value, str):
            return value
        return "inconclusive" if value is None else ("yes" if value else "no")
    except (NotFound, Undefined):
        return "—"


UNITS: Mapping[str, LessonFigure] = {  # of guesses
    unit: exact(factor, dimension)
    for dimension, factors in (
        (PLAIN, {"": 1.0, "times": 1.0, "%": 0.01, "points": 0.01}),
        (TIME, {"ns": 1e-9, "µs": 1e-6, "us": 1e-6, "ms": 1e-3, "s": 1.0}),
        (WORK, {"FLOP": 1.0, "MFLOP": 1e6, "GFLOP": 1e9, "TFLOP": 1e12}),
        (RATE, {"FLOP/s": 1.0, "MFLOP/s": 1e6, "GFLOP/s": 1e9, "TFLOP/s": 1e12}),
        (SIZE, {"B": 1.0, "bytes": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9}),
        (BANDWIDTH, {"MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12}),
        (INTENSITY, {"FLOP/byte": 1.0}),
        (PLAIN.times(TIME, -1), {"samples/s": 1.0}),
    )
    for unit, factor in factors.items()
}
NO_IDEA = "no idea"
CANNOT_TELL = "can't tell"


@dataclass(frozen=True, slots=True)
class GuessBlock:
    """The reader's guess before anything is measured: a number in `unit`, or one of `choices`."""

    id: str
    ask: str
    unit: str = ""
    choices: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise InvalidInput.of("unit", self.unit, [unit for unit in UNITS if unit])
        if not self.id.isidentifier() or self.id in (*FACTS, *UNIT_NAMES, *OUTCOMES):
            taken = ", ".join((*FACTS, *UNIT_NAMES, *OUTCOMES))
            raise InvalidInput.of("id", self.id, f"letters, digits and _, like how_long, but {taken}")
        if len(self.choices) == 1 or len(set(self.choices)) != len(self.choices):
            raise InvalidInput.of("choices", ", ".join(self.choices), "two or more, each once")


@dataclass(frozen=True, slots=True)
class RunBlock:
    """An experiment, in the words of the command line; `device` may also be `gpu`: this machine's, or a recording."""

    operation: str
    size: str = ""
    shape: str = ""
    dtype: str = "fp32"
    impl: str = ""
    device: str = "cpu"
    cache: str = ""
    data: str = "normal"
    threads: str = ""
    budget: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True)
class MistakeBlock:
    """A mistake made on purpose next to the right way: `source="wrong"` and `source="right"` of what it measures."""

    mistake: str
    id: str = ""


@dataclass(frozen=True, slots=True)
class PredictBlock:
    """A prediction, in the words of the command line."""

    operation: str
    gpu: str
    size: str = ""
    shape: str = ""
    dtype: str = "fp32"
    impl: str = ""
    calls: str = USUAL_CALLS
    id: str = ""


@dataclass(frozen=True, slots=True)
class LaunchBlock:
    """A kernel launch as arithmetic: `elements` in blocks of `threads` on a GPU of the table, one's own or `here`."""

    elements: int
    threads: int
    gpu: str = ""
    cc: str = ""
    multiprocessors: int = 0
    registers: int = 32
    shared: int = 0
    id: str = ""


@dataclass(frozen=True, slots=True)
class TensorBlock:
    """A chain of indexing and reshaping; with `read` the cost of reading what it gives, measured."""

    expression: str
    read: bool = False
    id: str = ""


@dataclass(frozen=True, slots=True)
class MemoryBlock:
    """The memory of training a model, in the words of the command line."""

    model: str
    batch: int
    dtype: str = "fp32"
    optimizer: str = "sgd"
    options: tuple[str, ...] = ()
    gpu: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True)
class ModelBlock:
    """The predicted speed of a whole model, in the words of the command line; `options` like ``gpus=8``."""

    model: str
    gpu: str
    task: str = "decode"
    options: tuple[str, ...] = ()
    id: str = ""


@dataclass(frozen=True, slots=True)
class TrainBlock:
    """A training, in the words of the command line."""

    model: str
    batch: int
    steps: int = 100
    modes: tuple[str, ...] = ("fp32",)
    processes: int = 1
    data: str = "rule"
    id: str = ""


@dataclass(frozen=True, slots=True)
class ClaimBlock:
    """A claim of the notebooks, with the verdict of the fact check."""

    row: str
    id: str = ""


@dataclass(frozen=True, slots=True)
class CheckBlock:
    """The rule that judges a guess: one of `exact`, `near`, `choice`, `option` and `reach`.

    Attributes:
        exact: an expression that arithmetic alone decides: right within half a percent.
        near: an expression: right within `right` times its value, close within `close` times.
        points: instead: right within so many percentage points, close within twice as many.
        option: the choice that is right whatever was measured.
        choice: an expression for each choice: the one that is true is right.
        reach: an expression that any of one's own runs makes true; the guess is not needed.
    """

    guess: str = ""
    exact: str = ""
    near: str = ""
    option: str = ""
    choice: Mapping[str, str] = field(default_factory=dict, hash=False)
    reach: str = ""
    right: float = 1.25
    close: float = 2.0
    points: float = 0.0

    def __post_init__(self) -> None:
        rules = [rule for rule in ("exact", "near", "option", "choice", "reach") if getattr(self, rule)]
        if len(rules) != 1:
            raise InvalidInput.of("check", ", ".join(rules) or "no rule", "one of exact, near, option, choice, reach")
        if not self.reach and not self.guess:
            raise InvalidInput("check: guess is missing: the id of the guess it judges")
        require(
            1 <= self.right <= self.close,
            "right and close",
            f"{self.right:g} and {self.close:g}",
            "1 <= right <= close",
        )


@dataclass(frozen=True, slots=True)
class SayBlock:
    """A text shown after a check when `when` is true; of a check's texts, the first whose condition holds."""

    text: Prose
    when: str = ""


@dataclass(frozen=True, slots=True)
class KeepBlock:
    """The rule to keep."""

    text: Prose


@dataclass(frozen=True, slots=True)
class InstructorBlock:
    """Notes for the instructor; learners do not see them."""

    text: Prose


def with_colon(ask: str) -> str:
    """Return what a guess asks for with a colon behind it, unless it ends with a mark of its own."""
    return ask if ask.endswith(("?", ":", ".")) else f"{ask}:"


Block = (
    GuessBlock
    | RunBlock
    | MistakeBlock
    | PredictBlock
    | LaunchBlock
    | TensorBlock
    | MemoryBlock
    | ModelBlock
    | TrainBlock
    | ClaimBlock
    | CheckBlock
    | SayBlock
    | KeepBlock
    | InstructorBlock
)


def name_of(block: Any) -> str:
    """Return what a lesson calls a block, or its class: `check` for `CheckBlock`."""
    return (block if isinstance(block, type) else type(block)).__name__.removesuffix("Block").lower()


BLOCKS: Mapping[str, type[Any]] = {name_of(kind): kind for kind in get_args(Block)}
COMPUTED = (PredictBlock, LaunchBlock, TensorBlock, MemoryBlock, ModelBlock, ClaimBlock)  # at once, without a device
MEASURED = (RunBlock, MistakeBlock, TrainBlock)
OF_FEATURES = (MistakeBlock, TensorBlock, MemoryBlock, ModelBlock, TrainBlock, ClaimBlock)
TYPES = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", tuple: "a list of texts"}


def block_of(kind: str, table: Mapping[str, Any]) -> Block:
    """Return the block that `table` describes.

    Raises:
        InvalidInput: no such kind or key, a key that is missing, or a value of another type; says what is accepted.
    """
    check_known("block", kind, BLOCKS)
    hints = get_type_hints(BLOCKS[kind])
    known = {row.name: row for row in fields(BLOCKS[kind])}
    for key in table:
        check_known(f"key of {kind}", key, known)
    missing = [
        name
        for name, row in known.items()
        if row.default is MISSING and row.default_factory is MISSING and name not in table
    ]
    if missing:
        raise InvalidInput(f"{kind}: {', '.join(missing)} is missing")
    return BLOCKS[kind](**{key: _value(f"{kind}.{key}", value, hints[key]) for key, value in table.items()})


def _value(what: str, value: object, hint: Any) -> Any:
    if hint is Prose and isinstance(value, str):
        return Prose.of(value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    origin = getattr(hint, "__origin__", hint)
    if origin is tuple and isinstance(value, list) and all(isinstance(part, str) for part in value):
        return tuple(value)
    if origin is not tuple and isinstance(value, dict) and all(isinstance(part, str) for part in value.values()):
        return MappingProxyType(dict(value))
    if isinstance(hint, type) and isinstance(value, hint) and isinstance(value, bool) == (hint is bool):
        return value
    raise InvalidInput.of(
        what,
        str(value)[:60],
        "a text" if hint is Prose else TYPES.get(origin, "a table of texts"),
    )


def feature_of(block: Any) -> Feature | None:
    """Return the feature that computes and shows a block; None where it is not installed."""
    return next((feature for feature in features() if name_of(block) in feature.lesson_blocks), None)


def module_of(block: Any, name: str) -> Any:
    """Return a module of that feature, loaded; None where it is not installed."""
    feature = feature_of(block)
    return feature and import_module(f"gpuexplore.features.{feature.name}.{name}")
