"""What an expression is made of, once it has been read: values, free of behaviour."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Slice:
    """``start:stop:step`` as it was typed; what was left out is None."""

    start: int | None
    stop: int | None
    step: int | None


@dataclass(frozen=True, slots=True)
class NewAxis:
    """``None`` between the brackets: an axis of length 1."""


@dataclass(frozen=True, slots=True)
class Rest:
    """``...`` between the brackets: all axes that nothing else names."""


Item = int | Slice | NewAxis | Rest
Argument = int | str  # a name stands for a tensor


@dataclass(frozen=True, slots=True)
class Index:
    """``[1, :, ::2]``."""

    items: tuple[Item, ...]
    text: str
    position: int


@dataclass(frozen=True, slots=True)
class Call:
    """``.view(4, 4)``, or a function that makes the first tensor, like ``arange(16)``.

    Attributes:
        values: the numbers of ``tensor([...])`` in row order; None for all others.
        position: of its first character, counted from 1.
    """

    name: str
    arguments: tuple[Argument, ...]
    text: str
    position: int
    values: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class Name:
    """A tensor that an earlier statement named."""

    name: str
    position: int


@dataclass(frozen=True, slots=True)
class Statement:
    """``y = x.t()``, a chain alone, or ``x[0] = 100``.

    Attributes:
        target: the name that the result gets; None where it gets none.
        written: what is written into the elements that the chain shows; None where nothing is.
        text: as it was typed, without spaces around it.
    """

    start: Call | Name
    steps: tuple[Index | Call, ...]
    text: str
    target: str | None = None
    written: float | None = None
