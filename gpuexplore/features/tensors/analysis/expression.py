"""The closed grammar of expressions: Python's parser reads them, and nothing of them is executed.

    statements  statement (";" statement)*
    statement   name "=" chain | chain "=" number, where the chain ends with an index | chain
    chain       (name | shape | function "(" ... ")") step*
    step        "[" item ("," item)* "]" | "." method "(" arguments ")" | ".T"
    item        number | slice | "..." | "None"

A shape is 4x4: its elements count from 0. Functions are those of FUNCTIONS; methods are those that the caller names.
"""

import ast
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from gpuexplore.core import InvalidInput, check_text, read_number, read_whole


@dataclass(frozen=True, slots=True)
class TensorCall:
    """A step, such as ``.view(4, 4)`` and ``[1, :, ::2]``, or what a chain begins with, such as ``arange(16)``.

    Attributes:
        name: of the method or the function; else ``shape``, ``name`` of a tensor, ``index``, or, at the end of a
            statement, ``assign`` of its result to a name and ``write`` of a number.
        arguments: whole numbers and names of tensors; items of an index, where None is a new axis and ``...`` all axes
            that nothing else names; the numbers of ``tensor``; the name; or the number and the statement's text.
        position: of its first character, counted from 1.
    """

    name: str
    arguments: tuple[Any, ...]
    text: str
    position: int


MOST_STATEMENTS = 12
LARGEST_NUMBER = 1_000_000_000
FUNCTIONS = ("arange", "zeros", "ones", "tensor", "empty", "rand", "randn")
STARTS = f"a name, a shape like 4x4, {', '.join(f'{name}(...)' for name in FUNCTIONS)}"
_WHOLE = f"whole numbers up to {LARGEST_NUMBER:,}"
_REST = "a step like .t() or [0], ';', or the end"


def read_expression(expression: str, methods: Collection[str]) -> tuple[TensorCall, ...]:
    """Return the steps of all statements of `expression`.

    Args:
        methods: the names of the methods there are.

    Raises:
        InvalidInput: names the position, what stands there and what is accepted.
    """
    check_text("expression", expression, ";", most=MOST_STATEMENTS)
    reader = _ExpressionReader(expression, methods)
    if found := re.search(r"[^\w\s\[\](),:.=;-]|\b_\w*", expression, re.ASCII):
        accepted = "names, whole numbers, shapes like 4x4, and [ ] ( ) , : . ... = - ;"
        reader.refuse(found.start() + 1, "names that begin with a letter" if found.group()[0] == "_" else accepted)
    steps: list[TensorCall] = []
    start = 1
    for text in expression.split(";"):
        end = start + len(text)
        if text.strip() or not steps or end <= len(expression):  # a separator may follow the last statement
            steps += reader.statement(start, end)
        start = end + 1
    return tuple(steps)


class _ExpressionReader:
    """Reads the syntax tree of each statement; columns count from 1.

    For Python's parser numbers and shapes are names of as many underscores, which no tensor has.
    """

    def __init__(self, expression: str, methods: Collection[str]) -> None:
        self._typed = f" {expression}"
        self._masked = re.sub(
            r"\b\d\w*(?:\.\d+(?!\w))?|(?<![\w.])torch\.(?=\w+\()|\s",
            lambda word: len(word[0]) * ("_" if word[0][0].isdigit() else " "),
            self._typed,
            flags=re.ASCII,
        )
        self._methods = methods

    def refuse(self, column: int | None, accepted: str, value: str = "") -> NoReturn:
        """Raise the error for a value at a column, without one for the word there or after the space."""
        found = re.compile(r"\w+(?:\.\d+)?|\.\.\.|\S", re.ASCII).search(self._typed, column or 0)
        position = found.start() if found else len(self._typed)
        value = value.strip() or (found.group() if found else "the end")
        raise InvalidInput.of(f"expression, character {position}:", value, accepted)

    def statement(self, start: int, end: int) -> list[TensorCall]:
        """Return the steps of the statement between two columns."""
        text = self._typed[start:end]
        if found := re.match(r"\s*([A-Za-z]\w*)\s*=", text):
            if found[1] in (*FUNCTIONS, "torch", "None"):
                self.refuse(start, "names that are not already functions or keywords")
            steps = self._steps(self._tree(start + found.end(), end, STARTS))
            return [*steps, TensorCall("assign", (found[1],), text, start)]
        left, equals, _ = text.partition("=")
        middle = start + len(left)
        steps = self._steps(self._tree(start, middle, STARTS))
        if equals:
            if steps[-1].name != "index":
                self.refuse(middle, "a step; only an index can be written to, as in x[0] = 100")
            number = self._tree(middle + 1, end, f"a number up to {LARGEST_NUMBER:,}")
            arguments = (self._number(number, read_number), text.strip())
            steps.append(TensorCall("write", arguments, steps[-1].text, steps[-1].position))
        return steps

    def _tree(self, start: int, end: int, accepted: str) -> ast.expr:
        """Return the syntax tree of what stands between two columns, which are those of its nodes."""
        text = self._masked[start:end]
        if not re.match(r" *[\w-]", text):
            self.refuse(start, accepted)
        closing: list[str] = []
        for column, sign in enumerate(self._typed[start:end], start):
            if sign in "([":
                closing.append(")" if sign == "(" else "]")
            elif sign in ")]" and sign != (expected := closing.pop() if closing else ""):
                self.refuse(column, repr(expected) if expected else _REST)
        if closing:
            self.refuse(end, repr(closing[-1]))
        if "=" in text:
            self.refuse(start + text.index("="), _REST)
        try:
            tree = ast.parse("-" + text.rjust(end - 1), mode="eval").body  # without a first sign it may not be indented
        except SyntaxError as error:
            self.refuse((error.offset or 1) - 1, "steps like .t(), .view(2, 8) and [0, 1:] after a name or a shape")
        if not isinstance(tree, ast.UnaryOp):  # of two expressions, with a sign or a comma between them
            self.refuse(start, "one chain of steps, or one number", self._typed[start:end])
        return tree.operand

    def _steps(self, node: ast.expr) -> list[TensorCall]:
        """Return what a chain begins with, and its steps."""
        called = node.func if isinstance(node, ast.Call) else node
        if isinstance(node, ast.Subscript):
            before = node.value
            name = "index"
            arguments = self._items(node)
        elif isinstance(called, ast.Attribute):
            before = called.value
            name = called.attr
            if name not in self._methods:
                self.refuse((called.end_col_offset or 0) - len(name), ", ".join(self._methods))
            if (name == "T") == isinstance(node, ast.Call):  # an attribute: without brackets
                self.refuse(called.end_col_offset, _REST if name == "T" else "'('")
            arguments = self._arguments(node)
        else:
            return [self._start(node)]
        steps = self._steps(before)
        text = self._typed[before.end_col_offset : node.end_col_offset].lstrip()
        return [*steps, TensorCall(name, arguments, text, (node.end_col_offset or 0) - len(text))]

    def _start(self, node: ast.expr) -> TensorCall:
        start = node.col_offset - len("torch.") * self._typed.endswith("torch.", 0, node.col_offset)
        text = self._typed[start : node.end_col_offset]
        name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
        if isinstance(node, ast.Call) and name == "tensor":
            if len(node.args) != 1:
                self.refuse((node.func.end_col_offset or 0) + 1, "a number, or one list of numbers or lists")
            try:
                arguments: tuple[Any, ...] = (np.array(self._nested(node.args[0]), float),)
            except ValueError:
                self.refuse(node.args[0].col_offset, "lists whose rows are of one length, at most 8 deep")
        elif name in FUNCTIONS:
            arguments = self._arguments(node)
        elif re.fullmatch(r"\d+(x\d+)+", text):
            name = "shape"
            arguments = tuple(map(read_whole, text.split("x")))
            if any(length is None or length > LARGEST_NUMBER for length in arguments):
                self.refuse(start, _WHOLE)
        elif isinstance(node, ast.Name) and text[0].isalpha():
            name = "name"
            arguments = (text,)
        else:
            self.refuse(node.col_offset, STARTS)
        return TensorCall(name, arguments, text, start)

    def _nested(self, node: ast.expr) -> Any:
        if isinstance(node, ast.List):
            return [self._nested(part) for part in node.elts]
        return self._number(node, read_number)

    def _items(self, node: ast.Subscript) -> tuple[Any, ...]:
        items: list[Any] = []
        for part in node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]:
            if isinstance(part, ast.Slice):
                ends = (part.lower, part.upper, part.step)
                items.append(slice(*(None if end is None else self._number(end) for end in ends)))
            elif isinstance(part, ast.Constant) and part.value in (None, ...):
                items.append(part.value)
            else:
                items.append(self._number(part, also=", a slice like 0:2, None or ..."))
        if not items or items.count(...) > 1:
            text = self._typed[node.value.end_col_offset : node.end_col_offset]
            self.refuse(node.value.end_col_offset, "at least one index, and one ... at most", text)
        return tuple(items)

    def _arguments(self, node: ast.expr) -> tuple[Any, ...]:
        found: list[Any] = []
        for value in node.args if isinstance(node, ast.Call) else ():
            if isinstance(value, ast.Tuple | ast.List):
                found += map(self._number, value.elts)
            elif isinstance(value, ast.Name) and value.id[0] != "_":
                found.append(value.id)
            else:
                found.append(self._number(value))
        return tuple(found)

    def _number(self, node: ast.expr, read: Callable[[str], float | None] = read_whole, *, also: str = "") -> Any:
        digits = node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else node
        text = self._typed[digits.col_offset : digits.end_col_offset]
        value = read(text) if isinstance(digits, ast.Name) and text[0].isdigit() else None
        if value is None or value > LARGEST_NUMBER:
            self.refuse(
                digits.col_offset, (_WHOLE if read is read_whole else f"a number up to {LARGEST_NUMBER:,}") + also
            )
        return value if digits is node else -value
