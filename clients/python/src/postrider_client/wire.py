"""Conversion between Python values and API JSON: snake_case and camelCase, datetimes, dataclasses."""

import base64
import dataclasses
import functools
import re
import typing
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import Any, Optional, TypeVar, Union, cast

A = TypeVar("A")
DateOrTime = Union[datetime, date, str]
# The default of an argument whose field stays as it is; None removes the value of a field.
UNCHANGED: Any = object()
CAPITAL = re.compile(r"(?<=[a-z])([A-Z])")


def body_of(**fields: Any) -> dict[str, Any]:
    """Return the fields as a JSON object, without None values."""
    return {wire_name(name): plain(value) for name, value in fields.items() if value is not None}


def changes_of(**fields: Any) -> dict[str, Any]:
    """Return the fields that were given as a JSON object, with None values."""
    return {wire_name(name): plain(value) for name, value in fields.items() if value is not UNCHANGED}


def items_of(items: Optional[Iterable[Any]]) -> Optional[list[dict[str, Any]]]:
    """Return dataclasses or mappings, such as the recipients of a batch, as JSON objects."""
    return None if items is None else [body_of(**(item if isinstance(item, Mapping) else vars(item))) for item in items]


def object_of(fields: Any) -> Any:
    """Return a mapping, such as the limits of a key, as a JSON object. None and UNCHANGED stay."""
    return body_of(**fields) if isinstance(fields, Mapping) else fields


def text_of(message: Union[str, bytes]) -> str:
    """Return a message as text. Raises UnicodeDecodeError if its bytes are not UTF-8."""
    return message.decode() if isinstance(message, bytes) else message


def wire_name(name: str) -> str:
    """Return the API's name of a field: `reply_to` is replyTo, `from_` is from."""
    first, *others = name.rstrip("_").split("_")
    return first + "".join(map(str.capitalize, others))


def argument_name(name: str) -> str:
    """Return the argument of a field of the API: `replyTo` is reply_to."""
    return CAPITAL.sub(r"_\1", name).lower()


def plain(value: Any) -> Any:
    """Return a value for JSON: bytes as base64. Raises ValueError for a datetime without a time zone."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if not isinstance(value, datetime):
        return value
    if value.tzinfo is None:
        raise ValueError(f"{value} needs a time zone, as in datetime.now(timezone.utc).")
    return value.isoformat()


def parse_datetime(text: str) -> datetime:
    # Python 3.9 and 3.10 do not parse the Z.
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def read(kind: type[A], answer: Mapping[str, Any]) -> A:
    """Return a response as a dataclass. Fields unknown to the dataclass are only in `raw`."""
    values = {
        name: answer if name == "raw" else _convert(hint, answer.get(wire_name(name)))
        for name, hint, has_default in _fields(cast("Any", kind))
        if name == "raw" or wire_name(name) in answer or not has_default
    }
    return kind(**values)


@functools.cache
def _fields(kind: Any) -> list[tuple[str, Any, bool]]:
    """Return the name and type of each field, and whether it has a default."""
    hints, missing = typing.get_type_hints(kind), dataclasses.MISSING
    return [
        (field.name, hints[field.name], field.default is not missing or field.default_factory is not missing)
        for field in dataclasses.fields(kind)
    ]


def _convert(hint: Any, value: Any) -> Any:
    if typing.get_origin(hint) is Union:
        (hint,) = (one for one in typing.get_args(hint) if one is not type(None))
    if value is None:
        return None
    if hint is datetime:
        return parse_datetime(value)
    if dataclasses.is_dataclass(hint):
        return read(cast("type[Any]", hint), value)
    if typing.get_origin(hint) is list:
        (item,) = typing.get_args(hint)
        return [_convert(item, one) for one in value]
    return value
