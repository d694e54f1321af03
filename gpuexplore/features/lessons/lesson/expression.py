"""The closed grammar of checks and figures: arithmetic, comparisons and named quantities; nothing of it is ever run.

Python's own parser makes the tree, of which only a few kinds of nodes are accepted; a figure carries its interval
along, and a comparison of intervals that overlap is neither true nor false.
"""

import ast
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from gpuexplore.analysis.figure import (
    LARGEST,
    SIZE,
    TIME,
    WORK,
    LessonFigure,
    QuantityRow,
    combined,
    exact,
    format_figure,
    is_less,
    mapped,
    raised,
)
from gpuexplore.core.errors import InvalidInput, NotFound, check_known, require

Value = LessonFigure | bool | str | None  # None: true and false both fit the intervals
Selectors = Mapping[str, str]
SIGNS: Mapping[type, str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
FUNCTIONS: Mapping[str, Callable[[float], float]] = {
    "ceil": math.ceil,
    "floor": math.floor,
    "round": round,
    "sqrt": math.sqrt,
    "log": math.log,
}
CHOICES: Mapping[str, Callable[..., LessonFigure]] = {"min": min, "max": max}
COMPARISONS: Mapping[type, Callable[[float, float], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
# What a quantity may be asked for, and what may narrow it down; `quantities` looks each up.
QUANTITIES = (
    "time", "mean_time", "min_time", "first_call", "rate", "bandwidth", "mfu", "speedup", "error", "flops", "bytes",
    "intensity", "peak", "share", "samples", "precision", "blocks", "waves", "last_wave", "warps", "occupancy",
    "multiprocessors", "memory", "loss", "phase", "index", "figure", "verdict", "bound", "batch",
    "peak_bandwidth", "support", "kind", "stride", "length", "count",
)  # fmt: skip
FACTS = ("gpu", "gpus", "bf16_units", "fp16_units", "cores")
# Units of numbers that a lesson states itself, like 16e9 * B / s.
UNIT_NAMES: Mapping[str, LessonFigure] = {"s": exact(1.0, TIME), "B": exact(1.0, SIZE), "FLOP": exact(1.0, WORK)}
OUTCOMES = ("right", "close", "off", "unclear", "not_measured", "no_guess")


@dataclass(frozen=True, slots=True)
class StepNames:
    """The names that the expressions of a step may look up.

    Attributes:
        rows: of everything the step measured or computed.
        facts: of this machine.
        answers: the guesses of the reader and, after a check, its outcome.
    """

    rows: tuple[QuantityRow, ...] = ()
    facts: Mapping[str, Value] = field(default_factory=dict)
    answers: Mapping[str, Value] = field(default_factory=dict)

    def quantity(self, name: str, selectors: Selectors) -> LessonFigure | str:
        """Return the quantity `name` of the one row that `selectors` leave.

        Raises:
            NotFound: it was not measured; says why.
            InvalidInput: several rows have it, with different values, or no row can have it.
        """
        rows = [row for row in self.rows if all(row.labels.get(key) == value for key, value in selectors.items())]
        found = {figure for row in rows if (figure := row.figures.get(name)) is not None}
        if len(found) == 1:
            return found.pop()
        asked = ", ".join([name, *(f"{key}={value}" for key, value in selectors.items())])
        if found:
            several = sorted({", ".join(f"{key}={value}" for key, value in row.labels.items()) for row in rows})
            raise InvalidInput(f"{asked} matches several results: {'; '.join(several[:4])}")
        raise NotFound(next((row.missing for row in rows if row.missing), f"{asked} was not measured"))

    def fact(self, name: str) -> Value:
        """Return a fact, a guess or an outcome.

        Raises:
            NotFound: no guess was made.
        """
        if name in self.facts:
            return self.facts[name]
        if name not in self.answers:
            raise NotFound(f"{name}: no guess was made")
        return self.answers[name]


@dataclass(frozen=True, slots=True)
class Expression:
    """A text that was parsed."""

    text: str
    tree: ast.expr

    def quantities(self) -> Iterator[tuple[str, Selectors]]:
        """Yield the quantities it asks for."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and _name(node.func) in QUANTITIES:
                yield _name(node.func), _selectors(node)


def parse(text: str, guesses: tuple[str, ...] = ()) -> Expression:
    """Return `text` as an expression.

    Args:
        guesses: ids of guesses that may be named as well.

    Raises:
        InvalidInput: it is too long, no expression, or uses what the grammar does not have; says what is accepted.
    """
    longest = 400
    require(len(text) <= longest, "expression", f"{len(text):,} characters", f"at most {longest}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        _check(tree, guesses)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InvalidInput.of("expression", text, "arithmetic like time(size=1024) / time(size=512)") from error
    return Expression(text.strip(), tree)


def evaluate(expression: Expression, names: StepNames) -> Value:
    """Return the value of an expression.

    Raises:
        NotFound: something it needs was not measured.
        InvalidInput: units do not go together, or a name stands for several figures.
    """
    return _value(expression.tree, names)


def figure_of(expression: Expression, names: StepNames) -> LessonFigure:
    """Return the figure an expression stands for.

    Raises:
        NotFound: as `evaluate`, or what was measured is no number, e.g. `inf`.
        InvalidInput: as `evaluate`, or it is no figure.
    """
    value = evaluate(expression, names)
    if isinstance(value, str):
        raise NotFound(f"{expression.text}: came out as {value}, which is not a number")
    if not isinstance(value, LessonFigure):
        raise InvalidInput.of("expression", expression.text, "what gives a number")
    return value


def _value(node: ast.expr, names: StepNames) -> Value:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else exact(float(str(node.value)))
    if isinstance(node, ast.Name):
        return UNIT_NAMES.get(node.id) or names.fact(node.id)
    if isinstance(node, ast.UnaryOp):
        if isinstance(node.op, ast.Not):
            value = _value(node.operand, names)
            return None if value is None else not value
        return combined("*", exact(-1.0), _figure(node.operand, names))
    if isinstance(node, ast.BinOp):
        left = _figure(node.left, names)
        right = _figure(node.right, names)
        return raised(left, right) if isinstance(node.op, ast.Pow) else combined(SIGNS[type(node.op)], left, right)
    if isinstance(node, ast.BoolOp):
        return _logic(node, names)
    if isinstance(node, ast.Compare):
        return _comparison(node, names)
    assert isinstance(node, ast.Call)
    return _call(node, names)


def _figure(node: ast.expr, names: StepNames) -> LessonFigure:
    value = _value(node, names)
    if not isinstance(value, LessonFigure):
        raise InvalidInput.of("value", str(value), "numbers")
    return value


def _logic(node: ast.BoolOp, names: StepNames) -> bool | None:
    decisive = isinstance(node.op, ast.Or)  # one true part decides an `or`, one false part an `and`
    undecided = False
    for part in node.values:
        value = _value(part, names)
        if value is decisive:
            return decisive
        undecided = undecided or value is None
    return None if undecided else not decisive


def _comparison(node: ast.Compare, names: StepNames) -> bool | None:
    sign = node.ops[0]
    left = _value(node.left, names)
    right = _value(node.comparators[0], names)
    if isinstance(left, str) or isinstance(right, str):
        if not isinstance(sign, ast.Eq | ast.NotEq):
            raise InvalidInput.of("comparison of texts", ast.unparse(node), "== and !=")
        return (left == right) == isinstance(sign, ast.Eq)
    if not (isinstance(left, LessonFigure) and isinstance(right, LessonFigure)):
        raise InvalidInput.of("comparison", ast.unparse(node), "two numbers, or two texts")
    return _compared(left, right, sign)


def _call(node: ast.Call, names: StepNames) -> Value:
    name = _name(node.func)
    if name in FUNCTIONS:
        return mapped(FUNCTIONS[name], _figure(node.args[0], names), keeps_unit=name in ("ceil", "floor", "round"))
    if name in CHOICES:
        figures = [_figure(argument, names) for argument in node.args]
        if len({figure.dimension for figure in figures}) > 1:
            raise InvalidInput(f"{name} of {', '.join(map(format_figure, figures))}: the units differ")
        return CHOICES[name](figures, key=lambda figure: figure.value)
    return names.quantity(name, _selectors(node))


def _compared(left: LessonFigure, right: LessonFigure, sign: ast.cmpop) -> bool | None:
    are_exact = left.is_exact and right.is_exact
    if isinstance(sign, ast.Eq | ast.NotEq):
        if not are_exact and left.low <= right.high and right.low <= left.high:
            return None
        return (are_exact and math.isclose(left.value, right.value, rel_tol=1e-9)) == isinstance(sign, ast.Eq)
    if are_exact:
        return COMPARISONS[type(sign)](left.value, right.value)
    return is_less(left, right) if isinstance(sign, ast.Lt | ast.LtE) else is_less(right, left)


def _check(node: ast.expr, guesses: tuple[str, ...], depth: int = 1) -> None:
    """Accept a tree of the grammar."""
    deepest = 20
    require(depth <= deepest, "expression", "nested too deeply", f"at most {deepest} levels")
    if isinstance(node, ast.Constant):
        is_number = isinstance(node.value, int | float) and not isinstance(node.value, bool)
        if not isinstance(node.value, str) and not (is_number and abs(float(str(node.value))) <= LARGEST):
            _refuse(node)
    elif isinstance(node, ast.Name):
        known = (*FACTS, *UNIT_NAMES, *OUTCOMES, *guesses)
        check_known("name", node.id, known)
    elif isinstance(node, ast.Call):
        _check_call(node, guesses, depth)
    else:
        for part in _parts(node):
            _check(part, guesses, depth + 1)


def _check_call(node: ast.Call, guesses: tuple[str, ...], depth: int) -> None:
    accepted = (
        "impl", "dtype", "size", "shape", "device", "source", "operation", "cache", "data", "threads", "of", "name",
    )  # fmt: skip
    name = _name(node.func)
    if name in FUNCTIONS or name in CHOICES:
        if node.keywords or (name in FUNCTIONS and len(node.args) != 1) or len(node.args) < 1:
            raise InvalidInput.of(f"arguments of {name}", ast.unparse(node), "numbers in brackets")
        for argument in node.args:
            _check(argument, guesses, depth + 1)
        return
    if name not in QUANTITIES:
        raise InvalidInput.of("quantity", name or ast.unparse(node)[:60], (*QUANTITIES, *FUNCTIONS, *CHOICES))
    if node.args:
        raise InvalidInput.of(
            f"argument of {name}", ast.unparse(node.args[0])[:60], f"named ones: {', '.join(accepted)}"
        )
    for selector in _selectors(node):
        check_known(f"selector of {name}", selector, accepted)


def _parts(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the parts of a node; refuse one that the grammar does not have."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        yield node.operand
    elif isinstance(node, ast.BinOp) and isinstance(node.op, (*SIGNS, ast.Pow)):
        yield from (node.left, node.right)
    elif isinstance(node, ast.BoolOp):
        yield from node.values
    elif (
        isinstance(node, ast.Compare)
        and len(node.ops) == 1
        and isinstance(node.ops[0], (*COMPARISONS, ast.Eq, ast.NotEq))
    ):
        yield from (node.left, node.comparators[0])
    else:
        _refuse(node)


def _refuse(node: ast.expr) -> NoReturn:
    accepted = "numbers, names, + - * / **, comparisons, and, or, not, and quantities like time(size=512)"
    raise InvalidInput.of("expression", ast.unparse(node)[:60], accepted)


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _selectors(node: ast.Call) -> Selectors:
    found = {}
    for keyword in node.keywords:
        if keyword.arg is None or not isinstance(keyword.value, ast.Constant):
            raise InvalidInput.of("selector", ast.unparse(node)[:60], "texts and numbers, like size=512")
        found[keyword.arg] = str(keyword.value.value)
    return found
