"""Turns the frozen values into JSON and back, by their type hints: one codec for all of them."""

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


def encode(value: Any) -> Any:
    """Return `value` as dicts, lists, strings, numbers and None."""
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        return {field.name: encode(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): encode(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [encode(member) for member in value]
    return value


def decode(kind: type[T], data: Any) -> T:
    """Return the value of type `kind` that `encode` turned into `data`; unknown keys are ignored.

    Raises:
        KeyError, TypeError, ValueError, InvalidInput: the data are not of that type.
    """
    return _decode(kind, data)  # type: ignore[no-any-return]


def _decode(kind: Any, data: Any) -> Any:
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return (
            None
            if data is None
            else _decode(next(option for option in get_args(kind) if option is not types.NoneType), data)
        )
    if origin is tuple:
        return _decode_tuple(get_args(kind), data)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return dict(data)
    if origin is Literal:
        return _checked(data, get_args(kind))
    if isinstance(kind, type) and is_dataclass(kind):
        hints = _hints(kind)
        return kind(**{name: _decode(hints[name], data[name]) for name in hints if name in data})
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(data)
    return kind(data) if kind in (int, float, str, bool) else data


def _decode_tuple(arguments: tuple[Any, ...], data: Any) -> tuple[Any, ...]:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return tuple(_decode(arguments[0], member) for member in data)
    return tuple(_decode(argument, item) for argument, item in zip(arguments, data, strict=True))


def _checked(data: Any, accepted: tuple[Any, ...]) -> Any:
    if data not in accepted:
        raise ValueError(f"{data!r} is none of {', '.join(map(str, accepted))}")
    return data


@lru_cache(maxsize=64)
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)
