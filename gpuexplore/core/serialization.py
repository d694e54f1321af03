"""JSON of the frozen values and back, by their type hints: one codec for all of them."""

import json
import os
import types
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.typed_text import check_characters

T = TypeVar("T")
_Decoder = Callable[[Any], Any]


def encode(value: Any) -> Any:
    """Return `value` as dicts, lists, strings, numbers and None; bytes as text in base64."""
    if type(value) in (str, int, float, bool, types.NoneType):
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


def write_json(path: Path, value: Any) -> None:
    """Write `value` to a file in one step, so that no other process reads half of it."""
    draft = path.with_suffix(f".{os.getpid()}.tmp")
    draft.write_text(json.dumps(encode(value)), encoding="utf-8")
    draft.replace(path)


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
    return _decoder(kind, strict=False)(data)  # type: ignore[arg-type]  # mypy takes no class for hashable


def decode_strictly(kind: type[T], data: Any) -> T:
    """Return the value like `decode`, but for untrusted data: types must match, without conversion.

    Raises:
        ValueError, InvalidInput: the data are not of that type; the text names the field and what is accepted.
        TypeError: a field is missing.
    """
    return _decoder(kind, strict=True)(data)  # type: ignore[arg-type]  # the same


def _scalar(kind: type, strict: bool) -> _Decoder:
    """Return the decoder of a text, number or truth value; other types are converted, or refused if strict."""
    if not strict:
        return kind
    accepted, types_ = _ACCEPTED[kind]
    beyond = 1e300  # larger than any quantity; squares of smaller numbers do not overflow

    def decoded(data: Any) -> Any:
        if not isinstance(data, types_) or (isinstance(data, bool) and kind is not bool):
            raise InvalidInput.of(_name_of(data), data, accepted)
        if isinstance(data, str):
            check_characters("text", data)
        if isinstance(data, int | float) and not -beyond <= data <= beyond:
            raise InvalidInput.of("number", f"{'-' if data < 0 else ''}beyond {beyond:g}", accepted)
        return kind(data)

    return decoded


def _container(kind: type, data: Any, strict: bool) -> Any:
    """Return a list or an object as it is; strictly, nothing else."""
    if strict and (not isinstance(data, kind) or isinstance(data, str)):
        raise InvalidInput.of(_name_of(data), data, "lists" if kind is Sequence else "objects")
    return data


def _field(name: str, member: _Decoder, data: Any, strict: bool) -> Any:
    """Return a decoded field; strictly, an error names it."""
    if not strict:
        return member(data)
    try:
        return member(data)
    except (InvalidInput, ValueError) as error:
        raise InvalidInput(f"{name}: {error}") from error


def _name_of(data: object) -> str:
    """Return JSON's name for a value of this type."""
    names: Mapping[str, tuple[type, ...]] = {
        "truth value": (bool,),
        "number": (int, float),
        "text": (str,),
        "list": (list, tuple),
        "object": (dict,),
    }
    return next((name for name, types_ in names.items() if isinstance(data, types_)), "null")


_ACCEPTED: Mapping[type, tuple[str, tuple[type, ...]]] = {
    bool: ("true or false", (bool,)),
    int: ("whole numbers", (int,)),
    float: ("numbers", (int, float)),
    str: ("texts", (str,)),
}


@cache
def _decoder(kind: Any, strict: bool) -> _Decoder:
    """Return the decoder of a type; its hints are read once, for thousands of results."""
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        known = _decoder(next(option for option in get_args(kind) if option is not types.NoneType), strict)
        return lambda data: None if data is None else known(data)
    if origin is tuple:
        return _tuple_decoder(get_args(kind), strict)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        if not strict:
            return dict
        member = _decoder(get_args(kind)[1], strict)
        return lambda data: {name: member(item) for name, item in dict(_container(Mapping, data, strict)).items()}
    if origin is Literal:
        return partial(_checked, accepted=get_args(kind))
    if isinstance(kind, type) and is_dataclass(kind):
        return partial(_object, kind, strict)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind
    if kind is bytes:
        return partial(b64decode, validate=True)
    return _scalar(kind, strict) if kind in _ACCEPTED else lambda data: data


def _object(kind: Any, strict: bool, data: Any) -> Any:
    given = _container(Mapping, data, strict)
    members = _members(kind, strict)
    return kind(
        **{name: _field(name, member, given[name], strict) for name, member in members.items() if name in given}
    )


@cache
def _members(kind: type, strict: bool) -> Mapping[str, _Decoder]:
    return {name: _decoder(hint, strict) for name, hint in get_type_hints(kind).items()}


def _tuple_decoder(arguments: tuple[Any, ...], strict: bool) -> _Decoder:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        member = _decoder(arguments[0], strict)
        return lambda data: tuple(map(member, _container(Sequence, data, strict)))
    members = [_decoder(argument, strict) for argument in arguments]
    return lambda data: tuple(
        member(item) for member, item in zip(members, _container(Sequence, data, strict), strict=True)
    )


def _checked(data: Any, accepted: tuple[Any, ...]) -> Any:
    if data not in accepted:
        raise ValueError(f"{data!r} is none of {', '.join(map(str, accepted))}")
    return data
