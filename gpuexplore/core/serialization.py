"""JSON of the frozen values and back, by their type hints: one codec for all of them."""

import types
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache, partial
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.typed_text import check_characters

T = TypeVar("T")
_Decoder = Callable[[Any], Any]
_SCALARS = frozenset({str, int, float, bool, types.NoneType})


def encode(value: Any) -> Any:
    """Return `value` as dicts, lists, strings, numbers and None; bytes as text in base64."""
    if type(value) in _SCALARS:
        return value
    members = _encoded_members(type(value))  # type: ignore[arg-type]  # mypy takes no class for hashable
    if members is not None:
        return {name: encode(getattr(value, name)) for name, omitted in members if getattr(value, name) != omitted}
    if isinstance(value, Mapping):
        return {str(key): encode(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [encode(member) for member in value]
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return value.value if isinstance(value, Enum) else value


@cache
def _encoded_members(kind: Any) -> tuple[tuple[str, Any], ...] | None:
    """Return the fields of a dataclass, each with the value that its absence means, or else MISSING."""
    if not is_dataclass(kind):
        return None
    return tuple((field.name, field.default if "omit_default" in field.metadata else MISSING) for field in fields(kind))


def decode(kind: type[T], data: Any) -> T:
    """Return the value of type `kind` that `encode` made `data` of; unknown keys are ignored.

    Raises:
        KeyError, TypeError, ValueError, InvalidInput: the data are not of that type.
    """
    return _decoder(kind, _Lenient)(data)  # type: ignore[no-any-return, arg-type]  # mypy takes no class for hashable


def decode_strictly(kind: type[T], data: Any) -> T:
    """Return what `decode` does, of untrusted data: no text is a number, no number a truth value.

    Raises:
        ValueError, InvalidInput: the data are not of that type; the text names the field and what is accepted.
        TypeError: a field is missing.
    """
    return _decoder(kind, _Strict)(data)  # type: ignore[no-any-return, arg-type]  # the same


class _Lenient:
    """Takes what can be converted."""

    @staticmethod
    def scalar(kind: type) -> _Decoder:
        return kind

    @staticmethod
    def container(_: type, data: Any) -> Any:
        return data

    @staticmethod
    def field(_: str, decode_: _Decoder, data: Any) -> Any:
        return decode_(data)


class _Strict:
    """Takes what is of the type as it stands, and names the field where that is not so."""

    @staticmethod
    def scalar(kind: type) -> _Decoder:
        accepted, types_ = _ACCEPTED[kind]

        def decoded(data: Any) -> Any:
            if not isinstance(data, types_) or (isinstance(data, bool) and kind is not bool):
                raise InvalidInput.of(_name_of(data), data, accepted)
            if isinstance(data, str):
                check_characters("text", data)
            if isinstance(data, int | float) and not -_BEYOND <= data <= _BEYOND:
                raise InvalidInput.of("number", f"{'-' if data < 0 else ''}beyond {_BEYOND:g}", accepted)
            return kind(data)

        return decoded

    @staticmethod
    def container(kind: type, data: Any) -> Any:
        if not isinstance(data, kind) or isinstance(data, str):
            raise InvalidInput.of(_name_of(data), data, "lists" if kind is Sequence else "objects")
        return data

    @staticmethod
    def field(name: str, decode_: _Decoder, data: Any) -> Any:
        try:
            return decode_(data)
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
    bool: ("true or false", (bool,)),
    int: ("whole numbers", (int,)),
    float: ("numbers", (int, float)),
    str: ("texts", (str,)),
}

_How = Any  # one of the two classes above


@cache
def _decoder(kind: Any, how: _How) -> _Decoder:
    """Return what decodes data of a type: its hints are read once, for thousands of results."""
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        known = _decoder(next(option for option in get_args(kind) if option is not types.NoneType), how)
        return lambda data: None if data is None else known(data)
    if origin is tuple:
        return _tuple_decoder(get_args(kind), how)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping_decoder(get_args(kind)[1], how)
    if origin is Literal:
        return partial(_checked, accepted=get_args(kind))
    if isinstance(kind, type) and is_dataclass(kind):
        return partial(_object, kind, how)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind
    if kind is bytes:
        return partial(b64decode, validate=True)
    return how.scalar(kind) if kind in _ACCEPTED else lambda data: data


def _object(kind: Any, how: _How, data: Any) -> Any:
    given, field = how.container(Mapping, data), how.field
    members = _members(kind, how)
    return kind(**{name: field(name, member, given[name]) for name, member in members.items() if name in given})


@cache
def _members(kind: type, how: _How) -> Mapping[str, _Decoder]:
    return {name: _decoder(hint, how) for name, hint in get_type_hints(kind).items()}


def _tuple_decoder(arguments: tuple[Any, ...], how: _How) -> _Decoder:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        member = _decoder(arguments[0], how)
        return lambda data: tuple(map(member, how.container(Sequence, data)))
    members = [_decoder(argument, how) for argument in arguments]
    return lambda data: tuple(member(item) for member, item in zip(members, how.container(Sequence, data), strict=True))


def _mapping_decoder(value: Any, how: _How) -> _Decoder:
    if how is _Lenient:
        return dict
    member = _decoder(value, how)
    return lambda data: {name: member(item) for name, item in dict(how.container(Mapping, data)).items()}


def _checked(data: Any, accepted: tuple[Any, ...]) -> Any:
    if data not in accepted:
        raise ValueError(f"{data!r} is none of {', '.join(map(str, accepted))}")
    return data
