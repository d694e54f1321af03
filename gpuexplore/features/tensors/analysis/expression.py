"""The closed grammar of expressions: reading one makes statements and runs nothing.

    statements  statement (";" statement)*
    statement   name "=" chain | chain "=" number, where the chain ends with an index | chain
    chain       (name | shape | function "(" ... ")") step*
    step        "[" item ("," item)* "]" | "." method "(" arguments ")" | ".T"
    item        number | slice | "..." | "None"

A shape is 4x4: its elements count from 0. Functions are those of FUNCTIONS; methods are those that the caller names.
"""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from types import EllipsisType
from typing import NoReturn, TypeVar

from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.typed_text import check_text
from gpuexplore.core.units import read_number, read_whole

Item = int | slice | EllipsisType | None  # None: a new axis of length 1; ...: all axes that nothing else names
Argument = int | str  # a name stands for a tensor


@dataclass(frozen=True, slots=True)
class Index:
    """``[1, :, ::2]``."""

    items: tuple[Item, ...]
    text: str
    position: int


@dataclass(frozen=True, slots=True)
class TensorCall:
    """``.view(4, 4)``, or what a chain begins with: a function like ``arange(16)``, a shape or the name of a tensor.

    Attributes:
        name: of the method or the function; ``shape`` of a shape, and ``name`` of a name, which is its argument.
        values: the numbers of ``tensor([...])`` in row order; None for all others.
        position: of its first character, counted from 1.
    """

    name: str
    arguments: tuple[Argument, ...]
    text: str
    position: int
    values: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class Statement:
    """``y = x.t()``, a chain alone, or ``x[0] = 100``.

    Attributes:
        target: the name that the result gets; None where it gets none.
        written: what is written into the elements that the chain shows; None where nothing is.
        text: as it was typed, without spaces around it.
    """

    start: TensorCall
    steps: tuple[Index | TensorCall, ...]
    text: str
    target: str | None = None
    written: float | None = None


MOST_STATEMENTS = 12
LARGEST_NUMBER = 1_000_000_000
_WORD = re.compile(
    r"(?P<space>\s+)|(?P<shape>\d+(?:x\d+)+(?!\w))|(?P<number>\d\w*(?:\.\d+(?!\w))?)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign>\.\.\.|[][(),:.=;-])|(?P<end>\Z)",
    re.ASCII,
)
Token = re.Match[str]  # its last group is its kind


def _refused(offset: int, value: object, accepted: str) -> InvalidInput:
    """Return the error for what stands at `offset`; readers count characters from 1."""
    return InvalidInput.of(f"expression, character {offset + 1}:", value, accepted)


def _tokens_of(expression: str) -> list[Token]:
    """Return the words of `expression` and an end, which is empty.

    Raises:
        InvalidInput: too long, too many statements, or a character that belongs to no word.
    """
    check_text("expression", expression, ";", most=MOST_STATEMENTS)
    found: list[Token] = []
    offset = 0
    while not found or found[-1].lastgroup != "end":
        match = _WORD.match(expression, offset)
        if match is None:
            accepted = "names, whole numbers, shapes like 4x4, and [ ] ( ) , : . ... = - ;"
            raise _refused(offset, expression[offset], accepted)
        if match.group().startswith("_"):
            raise _refused(offset, match.group(), "names that begin with a letter")
        if match.lastgroup != "space":
            found.append(match)
        offset = match.end()
    return found


FUNCTIONS = ("arange", "zeros", "ones", "tensor")
T = TypeVar("T")
STARTS = f"a name, a shape like 4x4, {', '.join(f'{name}(...)' for name in FUNCTIONS)}"


def read_expression(expression: str, methods: Collection[str]) -> tuple[Statement, ...]:
    """Return the statements of `expression`.

    Args:
        methods: the names of the methods there are.

    Raises:
        InvalidInput: names the position, what stands there and what is accepted.
    """
    reader = _ExpressionReader(expression, methods)
    statements = [reader.statement()]
    while reader.took(";"):
        if reader.next.lastgroup != "end":  # a separator after the last statement
            statements.append(reader.statement())
    if reader.next.lastgroup != "end":
        reader.refuse("a step like .t() or [0], ';', or the end")
    return tuple(statements)


class _ExpressionReader:
    """Reads tokens from the left; each method reads what it is called after."""

    def __init__(self, expression: str, methods: Collection[str]) -> None:
        self._expression = expression
        self._methods = methods
        self._tokens = _tokens_of(expression)
        self._next = 0

    @property
    def next(self) -> Token:
        return self._tokens[self._next]

    def statement(self) -> Statement:
        first = self.next
        target = None
        if first.lastgroup == "name" and self._tokens[self._next + 1].group() == "=":
            target = first.group()
            if target in (*FUNCTIONS, "torch", "None"):
                self.refuse("names that are not already functions or keywords")
            self._next += 2
        start = self._start()
        steps = self._steps()
        written = None
        if target is None and self.next.group() == "=":
            if not steps or not isinstance(steps[-1], Index):
                self.refuse("a step; only an index can be written to, as in x[0] = 100")
            self._next += 1
            written = self._written()
        return Statement(start, steps, self._text_from(first), target, written)

    def took(self, sign: str) -> bool:
        if self.next.lastgroup != "sign" or self.next.group() != sign:
            return False
        self._next += 1
        return True

    def refuse(self, accepted: str) -> NoReturn:
        raise _refused(self.next.start(), self.next.group() or "the end", accepted)

    def _expect(self, sign: str, context: str = "") -> None:
        if not self.took(sign):
            self.refuse(f"{sign!r}{context}")

    def _text_from(self, first: Token) -> str:
        last = self._tokens[self._next - 1]
        return self._expression[first.start() : last.end()]

    def _start(self) -> TensorCall:
        first = self.next
        if first.lastgroup == "shape":
            self._next += 1
            lengths = tuple(self._checked(first, length) for length in first.group().split("x"))
            return TensorCall("shape", lengths, first.group(), first.start() + 1)
        if first.lastgroup == "name" and first.group() == "torch" and self._tokens[self._next + 1].group() == ".":
            self._next += 2
            if self.next.group() not in FUNCTIONS:
                self.refuse(", ".join(FUNCTIONS))
        if self.next.lastgroup != "name":
            self.refuse(STARTS)
        if self._tokens[self._next + 1].group() == "(":
            return self._function(first)
        self._next += 1
        return TensorCall("name", (first.group(),), first.group(), first.start() + 1)

    def _function(self, first: Token) -> TensorCall:
        name = self.next.group()
        if name not in FUNCTIONS:
            self.refuse(STARTS)
        self._next += 2
        if name != "tensor":
            return TensorCall(name, self._arguments(), self._text_from(first), first.start() + 1)
        shape, values = self._literal()
        self._expect(")")
        return TensorCall(name, shape, self._text_from(first), first.start() + 1, values)

    def _literal(self) -> tuple[tuple[int, ...], tuple[float, ...]]:
        """Read nested lists of numbers; return their shape and the numbers."""
        if not self.took("["):
            return (), (self._written(),)
        rows = self._listed(self._literal, "]")
        if any(shape != rows[0][0] for shape, _ in rows):
            self.refuse("lists whose rows are of one length")
        return ((len(rows), *rows[0][0]) if rows else (0,)), tuple(value for _, row in rows for value in row)

    def _steps(self) -> tuple[Index | TensorCall, ...]:
        found: list[Index | TensorCall] = []
        while self.next.group() in ("[", "."):
            first = self.next
            self._next += 1
            found.append(self._index(first) if first.group() == "[" else self._method(first))
        return tuple(found)

    def _index(self, first: Token) -> Index:
        items = tuple(self._listed(self._item, "]"))
        if not items or items.count(...) > 1:
            raise _refused(first.start(), self._text_from(first), "at least one index, and one ... at most")
        return Index(items, self._text_from(first), first.start() + 1)

    def _method(self, dot: Token) -> TensorCall:
        name = self.next.group()
        if name not in self._methods:
            self.refuse(", ".join(self._methods))
        self._next += 1
        if name == "T":  # an attribute: without brackets
            return TensorCall(name, (), f".{name}", dot.start() + 1)
        self._expect("(")
        return TensorCall(name, self._arguments(), self._text_from(dot), dot.start() + 1)

    def _arguments(self) -> tuple[Argument, ...]:
        return tuple(value for values in self._listed(self._argument, ")") for value in values)

    def _argument(self) -> tuple[Argument, ...]:
        for opening, closing in (("(", ")"), ("[", "]")):
            if self.took(opening):
                return tuple(self._listed(self._number, closing))
        if self.next.lastgroup == "name":
            self._next += 1
            return (self._tokens[self._next - 1].group(),)
        return (self._number(),)

    def _item(self) -> Item:
        if self.took("..."):
            return ...
        if self.next.group() == "None":
            self._next += 1
            return None
        parts = [self._number_or_none()]
        while len(parts) < 3 and self.took(":"):
            parts.append(self._number_or_none())
        if len(parts) > 1:
            return slice(*parts, *[None] * (3 - len(parts)))
        if parts[0] is None:
            self.refuse("a whole number, a slice like 0:2, None or ...")
        return parts[0]

    def _number_or_none(self) -> int | None:
        return self._number() if self.next.lastgroup == "number" or self.next.group() == "-" else None

    def _number(self) -> int:
        sign = -1 if self.took("-") else 1
        if self.next.lastgroup != "number":
            self.refuse("whole numbers")
        self._next += 1
        return sign * self._checked(self._tokens[self._next - 1])

    def _checked(self, token: Token, text: str | None = None) -> int:
        value = read_whole(token.group() if text is None else text)
        if value is None or value > LARGEST_NUMBER:
            raise _refused(token.start(), token.group(), f"whole numbers up to {LARGEST_NUMBER:,}")
        return value

    def _written(self) -> float:
        sign = -1 if self.took("-") else 1
        value = read_number(self.next.group()) if self.next.lastgroup == "number" else None
        if value is None or value > LARGEST_NUMBER:
            self.refuse(f"a number up to {LARGEST_NUMBER:,}")
        self._next += 1
        return sign * value

    def _listed(self, read: Callable[[], T], closing: str) -> list[T]:
        """Read values between commas up to the bracket `closing`; a comma may stand before it."""
        found: list[T] = []
        while not self.took(closing):
            if found:
                self._expect(",", f" or {closing!r}")
                if self.took(closing):
                    break
            found.append(read())
        return found
