"""Conversion between Python values and API JSON: snake_case and camelCase, datetimes, dataclasses."""

import base64
import dataclasses
import functools
import typing
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Optional, TypeVar, Union, cast

A = TypeVar("A")


def body_of(**fields: Any) -> dict[str, Any]:
    """Return the fields as a JSON object, without None values."""
    return {wire_name(name): plain(value) for name, value in fields.items() if value is not None}


def items_of(items: Iterable[Any]) -> list[dict[str, Any]]:
    """Return dataclasses or mappings, such as the recipients of a batch, as JSON objects."""
    return [body_of(**(item if isinstance(item, Mapping) else vars(item))) for item in items]


def wire_name(name: str) -> str:
    """Return the API's name of a field: `reply_to` is replyTo, `from_` is from."""
    first, *others = name.rstrip("_").split("_")
    return first + "".join(map(str.capitalize, others))


def word(value: Optional[bool]) -> Optional[str]:  # noqa: FBT001 - a value, not a switch
    """Return a boolean as the value of a query parameter."""
    return None if value is None else str(value).lower()


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
    fields = _fields(cast("Any", kind))
    values = {name: _convert(hint, answer.get(wire_name(name))) for name, hint in fields if name != "raw"}
    return kind(**values, **({"raw": answer} if ("raw" in dict(fields)) else {}))


@functools.cache
def _fields(kind: Any) -> list[tuple[str, Any]]:
    hints = typing.get_type_hints(kind)
    return [(field.name, hints[field.name]) for field in dataclasses.fields(kind)]


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
