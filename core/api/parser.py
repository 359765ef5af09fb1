"""Strict JSON parser: ambiguous or unstorable input is refused with a specific message (docs/decisions/0004).

DRF's parser keeps the last of two equal keys, turns 1e400 into infinity, passes NUL and unpaired surrogates on to
PostgreSQL, and fails on 100,000 open brackets with a 500.
"""

import json
import math
import string
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from core.api.errors import InvalidJson, LengthRequired, PayloadTooLarge, UnsupportedMediaType
from core.lib.coded_texts import CodedText

# The limit of an operation, unless its view allows more: MAX_BODY_BYTES is for attachments and batches
# (docs/decisions/0079).
DEFAULT_BODY_BYTES = 1024 * 1024
MAX_BODY_BYTES = 20 * 1024 * 1024
# Values and keys of a body: each takes up to 100 bytes of memory and a microsecond.
MAX_VALUES = 250_000
# UTF-8 beyond U+FFFF, such as emoji: one such character makes Python store the whole text with four bytes each.
MAX_WIDE_BYTES = 8 * 1024 * 1024
WIDE = bytes(range(0xF0, 0xF5))
# Each of these precedes a value or a key.
STRUCTURAL = b"[{,:"
BASE64 = f"{string.ascii_letters}{string.digits}+/=".encode()
# By byte: whether it is none of base64.
IS_OTHER = bytes(byte not in BASE64 for byte in range(256))
LONG_BASE64 = bytes(64 * 1024)
MAX_DEPTH = 32
MAX_NUMBER_LENGTH = 64
ANY_MEDIA_TYPE = "*/*"
BODY_METHODS = frozenset({"POST", "PUT", "PATCH"})


class StrictJSONParser(BaseParser):
    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> dict[str, Any]:
        # The server passes Content-Length bytes at most.
        return parse_object(stream.read(MAX_BODY_BYTES + 1))


def check_body_headers(request: Request, *, max_bytes: int) -> None:
    """Refuse a body by its headers, before authentication and before a byte is read."""
    meta = request.META
    if request.method not in BODY_METHODS:
        return
    if meta.get("HTTP_TRANSFER_ENCODING"):
        raise LengthRequired("Send a Content-Length header; chunked bodies are not supported.")
    length = meta.get("CONTENT_LENGTH") or "0"
    if not length.isascii() or not length.isdigit():
        raise LengthRequired("Content-Length must be the length of the body in bytes.")
    if int(length) == 0:
        return
    check_body_type(request)
    if int(length) > max_bytes:
        raise PayloadTooLarge(f"The body has {int(length):,} bytes; at most {max_bytes:,} are allowed here.")


def check_body_type(request: Request) -> None:
    """Refuse a body that is compressed, or not declared as JSON."""
    meta = request.META
    if meta.get("HTTP_CONTENT_ENCODING", "identity").lower() != "identity":
        raise UnsupportedMediaType("Send the body uncompressed; compressed bodies are not supported.")
    if meta.get("CONTENT_TYPE", "").partition(";")[0].strip().lower() != "application/json":
        raise UnsupportedMediaType("Send the body as application/json.")


def parse_object(body: bytes) -> dict[str, Any]:
    """Parse a JSON object. Raises InvalidJson for all input listed in docs/specification.md, Errors."""
    value = parse_json(body)
    if not isinstance(value, dict):
        raise InvalidJson(CodedText("api.not_an_object"))
    return value


def parse_json(body: bytes) -> Any:
    """Parse any JSON value. Raises InvalidJson like parse_object."""
    _refuse_too_many_values(body)
    _refuse_too_wide(body)
    value = _parse(body)
    for text in _strings(value):
        if "\0" in text:
            raise InvalidJson("A string contains a NUL character (\\u0000); remove it.")
        if not text.isascii() and _has_lone_surrogate(text):
            raise InvalidJson("A string contains an unpaired surrogate; send complete characters.")
    return value


def _refuse_too_many_values(body: bytes) -> None:
    """Raise InvalidJson for more than MAX_VALUES values and keys, without building one of them."""
    if _count_values(body) <= MAX_VALUES:
        return
    # The count includes commas and colons of texts, such as CSS in HTML; without the texts it is exact.
    plain = body.replace(rb"\\", b"").replace(rb"\"", b"")
    if plain.count(b'"') <= 2 * MAX_VALUES and _count_values(b"".join(plain.split(b'"')[::2])) <= MAX_VALUES:
        return
    raise InvalidJson(f"The body has more than {MAX_VALUES:,} values and keys. Send fewer in a request.")


def _count_values(body: bytes) -> int:
    """Return the number of structural characters: every value and key but the first follows one."""
    return _count(body, STRUCTURAL)


def _count(body: bytes, characters: bytes) -> int:
    return len(body) - len(body.translate(None, characters))


def _refuse_too_wide(body: bytes) -> None:
    if len(body) <= MAX_WIDE_BYTES or not _count(body, WIDE):
        return
    if len(body) - _count_long_base64(body) > MAX_WIDE_BYTES:
        raise InvalidJson(
            f"A body with emoji or other characters beyond U+FFFF can have at most {MAX_WIDE_BYTES:,} bytes "
            "without its attachments. Send less in a request."
        )


def _count_long_base64(body: bytes) -> int:
    """Return the length of the runs of base64 that have 64 KiB or more.

    A regular expression would read almost as long ones again from each of their characters.
    """
    others = body.translate(IS_OTHER)
    count, start = 0, others.find(LONG_BASE64)
    while start >= 0:
        end = others.find(1, start)
        end = len(others) if end < 0 else end
        count += end - start
        start = others.find(LONG_BASE64, end)
    return count


def _parse(body: bytes) -> Any:
    try:
        return json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_unique_keys,
            parse_constant=_refuse_constant,
            parse_float=_finite_float,
            parse_int=_bounded_int,
        )
    except UnicodeDecodeError as error:
        raise InvalidJson(f"The body is not valid UTF-8 (at byte {error.start}).") from error
    except json.JSONDecodeError as error:
        raise InvalidJson(
            CodedText("api.invalid_syntax", error=error.msg, line=error.lineno, column=error.colno)
        ) from error
    except RecursionError as error:
        raise _too_deep() from error


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) == len(pairs):
        return value
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            raise InvalidJson(CodedText("api.duplicate_key", name=repr(name[:64])))
        seen.add(name)
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidJson(CodedText("api.not_a_number", name=name))


def _finite_float(text: str) -> float:
    value = float(text) if len(text) <= MAX_NUMBER_LENGTH else math.inf
    if math.isinf(value):
        raise InvalidJson(f"The number {text[:MAX_NUMBER_LENGTH]} is too large or too long.")
    return value


def _bounded_int(text: str) -> int:
    if len(text) > MAX_NUMBER_LENGTH:
        raise InvalidJson(f"The number {text[:MAX_NUMBER_LENGTH]}… is too long.")
    return int(text)


def _strings(value: Any) -> Iterator[str]:
    """Yield all strings, keys included, without recursion. Raises InvalidJson for nesting deeper than MAX_DEPTH."""
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
    return InvalidJson(CodedText("api.nested_too_deep", limit=MAX_DEPTH))


def _has_lone_surrogate(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


class Negotiation(DefaultContentNegotiation):
    """DRF's negotiation, only for clients that request a media type: it costs as much as checking an API key."""

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> Any:
        """Return the renderer and its media type."""
        if request.META.get("HTTP_ACCEPT", ANY_MEDIA_TYPE) == ANY_MEDIA_TYPE:
            first = next(iter(renderers))
            return first, first.media_type
        return super().select_renderer(request, renderers, format_suffix)
