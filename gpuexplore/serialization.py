"""Turns the frozen values into JSON and back, by their type hints: one codec for all of them."""

import types
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, fields, is_dataclass
from enum import Enum
from functools import lru_cache, partial
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from gpuexplore.errors import InvalidInput
from gpuexplore.typed_text import check_characters

T = TypeVar("T")


def encode(value: Any) -> Any:
    """Return `value` as dicts, lists, strings, numbers and None; bytes as text in base64."""
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        members = ((field, getattr(value, field.name)) for field in fields(value))
        return {field.name: encode(member) for field, member in members if not _is_omitted(field, member)}
    if isinstance(value, Mapping):
        return {str(key): encode(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [encode(member) for member in value]
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return value


def _is_omitted(field: Field[Any], member: Any) -> bool:
    """Return whether a field is left out: it has its default, and says so in its metadata."""
    return "omit_default" in field.metadata and member == field.default


def decode(kind: type[T], data: Any) -> T:
    """Return the value of type `kind` that `encode` turned into `data`; unknown keys are ignored.

    Raises:
        KeyError, TypeError, ValueError, InvalidInput: the data are not of that type.
    """
    return _decode(kind, data, _Lenient)  # type: ignore[no-any-return]


def decode_strictly(kind: type[T], data: Any) -> T:
    """Return what `decode` does, of data that anybody may have written: no text is a number, no number a truth value.

    Raises:
        ValueError, InvalidInput: the data are not of that type; the text names the field and what is accepted.
        TypeError: a field is missing.
    """
    return _decode(kind, data, _Strict)  # type: ignore[no-any-return]


class _Lenient:
    """Takes what can be converted."""

    @staticmethod
    def scalar(kind: type, data: Any) -> Any:
        return kind(data)

    @staticmethod
    def container(_: type, data: Any) -> Any:
        return data

    @staticmethod
    def field(_: str, decoded: Callable[[], Any]) -> Any:
        return decoded()


class _Strict:
    """Takes what is of the type as it stands, and names the field where that is not so."""

    @staticmethod
    def scalar(kind: type, data: Any) -> Any:
        accepted, types_ = _ACCEPTED[kind]
        if not isinstance(data, types_) or (isinstance(data, bool) and kind is not bool):
            raise InvalidInput.of(_name_of(data), data, accepted)
        if isinstance(data, str):
            check_characters("text", data)
        if isinstance(data, int | float) and not -_BEYOND <= data <= _BEYOND:
            raise InvalidInput.of("number", f"{'-' if data < 0 else ''}beyond {_BEYOND:g}", accepted)
        return kind(data)

    @staticmethod
    def container(kind: type, data: Any) -> Any:
        if not isinstance(data, kind) or isinstance(data, str):
            raise InvalidInput.of(_name_of(data), data, "lists" if kind is Sequence else "objects")
        return data

    @staticmethod
    def field(name: str, decoded: Callable[[], Any]) -> Any:
        try:
            return decoded()
        except (InvalidInput, ValueError) as error:
            raise InvalidInput(f"{name}: {error}") from error


def _name_of(data: object) -> str:
    """Return what JSON calls a value of this type."""
    return next((name for name, types_ in _NAMES.items() if isinstance(data, types_)), "null")


_NAMES: Mapping[str, tuple[type, ...]] = {
    "truth value": (bool,),
    "number": (int, float),
    "text": (str,),
    "list": (list, tuple),
    "object": (dict,),
}
_BEYOND = 1e300  # of no quantity, and the squares of what is below it fit
_ACCEPTED: Mapping[type, tuple[str, tuple[type, ...]]] = {
    bool: ("true and false", (bool,)),
    int: ("whole numbers", (int,)),
    float: ("numbers", (int, float)),
    str: ("texts", (str,)),
}

_How = type[_Lenient] | type[_Strict]


def _decode(kind: Any, data: Any, how: _How) -> Any:
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return (
            None
            if data is None
            else _decode(next(option for option in get_args(kind) if option is not types.NoneType), data, how)
        )
    if origin is tuple:
        return _decode_tuple(get_args(kind), how.container(Sequence, data), how)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        if how is _Lenient:
            return dict(data)
        _, member = get_args(kind)
        return {name: _decode(member, value, how) for name, value in dict(how.container(Mapping, data)).items()}
    if origin is Literal:
        return _checked(data, get_args(kind))
    if isinstance(kind, type) and is_dataclass(kind):
        hints = _hints(kind)
        given = how.container(Mapping, data)
        return kind(
            **{
                name: how.field(name, partial(_decode, hints[name], given[name], how))
                for name in hints
                if name in given
            }
        )
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(data)
    if kind is bytes:
        return b64decode(data, validate=True)
    return how.scalar(kind, data) if kind in _ACCEPTED else data


def _decode_tuple(arguments: tuple[Any, ...], data: Any, how: _How) -> tuple[Any, ...]:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return tuple(_decode(arguments[0], member, how) for member in data)
    return tuple(_decode(argument, item, how) for argument, item in zip(arguments, data, strict=True))


def _checked(data: Any, accepted: tuple[Any, ...]) -> Any:
    if data not in accepted:
        raise ValueError(f"{data!r} is none of {', '.join(map(str, accepted))}")
    return data


@lru_cache(maxsize=64)
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)
