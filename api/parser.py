"""Strict JSON: what would be read in two ways, or could not be stored, is refused by name.

The framework's parser keeps the last of two equal keys, turns 1e400 into infinity, lets NUL and lone
surrogates through to PostgreSQL, and answers 100,000 open brackets with a 500.
"""

import json
import math
from collections.abc import Iterator
from typing import Any, NoReturn

from rest_framework.parsers import BaseParser
from rest_framework.request import Request

from api.errors import InvalidJson, LengthRequired, PayloadTooLarge, UnsupportedMediaType

MAX_BODY_BYTES = 20 * 1024 * 1024
MAX_DEPTH = 32
MAX_NUMBER_LENGTH = 64
BODY_METHODS = frozenset({"POST", "PUT", "PATCH"})


class StrictJSONParser(BaseParser):
    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> dict[str, Any]:
        # One byte more than announced is never read: the server hands over Content-Length bytes.
        return parse_object(stream.read(MAX_BODY_BYTES + 1))


def check_body_headers(request: Request) -> None:
    """Refuse a body by its headers, before anybody is authenticated and before a byte is read."""
    meta = request.META
    if request.method not in BODY_METHODS:
        return
    if meta.get("HTTP_TRANSFER_ENCODING"):
        raise LengthRequired("Send the body with a Content-Length; chunked bodies are not taken.")
    length = meta.get("CONTENT_LENGTH") or "0"
    if not length.isascii() or not length.isdigit():
        raise LengthRequired("Content-Length must be a whole number of bytes.")
    if int(length) == 0:
        return
    if meta.get("HTTP_CONTENT_ENCODING", "identity").lower() != "identity":
        raise UnsupportedMediaType("Send the body as it is; compressed bodies are not taken.")
    if meta.get("CONTENT_TYPE", "").partition(";")[0].strip().lower() != "application/json":
        raise UnsupportedMediaType("Send the body as application/json.")
    if int(length) > MAX_BODY_BYTES:
        raise PayloadTooLarge(f"The body may have {MAX_BODY_BYTES:,} bytes; this one has {int(length):,}.")


def parse_object(body: bytes) -> dict[str, Any]:
    """Parse a JSON object. Raises InvalidJson for everything that CONTRACT section 1 names."""
    value = _parse(body)
    if not isinstance(value, dict):
        raise InvalidJson("The body must be a JSON object.")
    for text in _strings(value):
        if "\0" in text:
            raise InvalidJson("The body has a NUL character (\\u0000) in a string; remove it.")
        if not text.isascii() and _has_lone_surrogate(text):
            raise InvalidJson("The body has half of a surrogate pair in a string; send whole characters.")
    return value


def _parse(body: bytes) -> Any:
    try:
        return json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_whole,
        )
    except UnicodeDecodeError as error:
        raise InvalidJson(f"The body is not UTF-8 (byte {error.start}).") from error
    except json.JSONDecodeError as error:
        raise InvalidJson(f"{error.msg} at line {error.lineno}, column {error.colno}.") from error
    except RecursionError as error:
        raise _too_deep() from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            raise InvalidJson(f"The key {name[:64]!r} is given twice.")
        seen.add(name)
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidJson(f"{name} is not a JSON number.")


def _finite(text: str) -> float:
    value = float(text) if len(text) <= MAX_NUMBER_LENGTH else math.inf
    if math.isinf(value):
        raise InvalidJson(f"The number {text[:MAX_NUMBER_LENGTH]} is too large or too long.")
    return value


def _whole(text: str) -> int:
    if len(text) > MAX_NUMBER_LENGTH:
        raise InvalidJson(f"The number {text[:MAX_NUMBER_LENGTH]}… is too long.")
    return int(text)


def _strings(value: Any) -> Iterator[str]:
    """Walk all strings, keys included, without recursion; raises InvalidJson below MAX_DEPTH."""
    level = [value]
    for _ in range(MAX_DEPTH):
        if not level:
            return
        deeper: list[Any] = []
        for item in level:
            if isinstance(item, str):
                yield item
            elif isinstance(item, dict):
                yield from item
                deeper.extend(item.values())
            elif isinstance(item, list):
                deeper.extend(item)
        level = deeper
    if any(isinstance(item, dict | list) for item in level):
        raise _too_deep()
    yield from (item for item in level if isinstance(item, str))


def _too_deep() -> InvalidJson:
    return InvalidJson(f"The body is nested deeper than {MAX_DEPTH} levels.")


def _has_lone_surrogate(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False
