"""Opaque ids: 32 bits of time and 96 random bits.

Sixteen bytes fit PostgreSQL's uuid type; the leading seconds keep new rows adjacent in every index. On the wire an id
is 22 characters of base 62, after the prefix of its type, if any. See docs/decisions/0002.
"""

import functools
import re
import secrets
import time
import uuid

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
LENGTH = 22
# The largest integer that JavaScript represents exactly, with all smaller ones.
SAFE_INTEGER = (1 << 53) - 1
CACHE_SIZE = 8192
# Two digits at a time: dividing a long number is the expensive part.
_PAIRS = [high + low for high in ALPHABET for low in ALPHABET]
_VALUES = {character: value for value, character in enumerate(ALPHABET)}
_LIMIT = 1 << 128
UUID_TEXT = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class InvalidId(ValueError):
    """Raised for a text that is not an id with the expected prefix."""


def new_id(prefix: str = "") -> str:
    """Return a new id such as `tpl_0T4qWx…`; ids of a later second sort later."""
    return prefix + base62(_new_number(), length=LENGTH)


def new_uuid() -> uuid.UUID:
    """Return the sixteen bytes of a new id, for rows whose id is never exposed."""
    return uuid.UUID(int=_new_number())


def _new_number() -> int:
    return (int(time.time()) << 96) | secrets.randbits(96)


# A worker converts each id about ten times per email; a cached conversion costs a hundredth.
@functools.lru_cache(maxsize=CACHE_SIZE)
def to_uuid(text: str, *, prefix: str = "") -> uuid.UUID:
    """Return the sixteen bytes of an id. Raises InvalidId for any other text."""
    body = text.removeprefix(prefix)
    if not text.startswith(prefix) or len(body) != LENGTH or not _VALUES.keys() >= set(body):
        raise InvalidId(f"{text!r} is not an id")
    number = 0
    for character in body:
        number = number * 62 + _VALUES[character]
    if number >= _LIMIT:
        raise InvalidId(f"{text!r} is not an id")
    return uuid.UUID(int=number)


def is_id(text: str, *, prefix: str = "") -> bool:
    """Return whether to_uuid accepts a text."""
    try:
        to_uuid(text, prefix=prefix)
    except InvalidId:
        return False
    return True


@functools.lru_cache(maxsize=CACHE_SIZE)
def from_uuid(value: uuid.UUID, *, prefix: str = "") -> str:
    return prefix + base62(value.int, length=LENGTH)


def uuid_text(text: str, *, prefix: str = "") -> str:
    """Return an id as a UUID: the spelling of the compatibility endpoints."""
    return str(to_uuid(text, prefix=prefix))


def id_number(text: str, *, prefix: str = "") -> int:
    """Return an id as a number, for clients that parse numbers: the last 53 of its 96 random bits."""
    return to_uuid(text, prefix=prefix).int & SAFE_INTEGER


def from_any_spelling(text: str, *, prefix: str = "") -> str:
    """Return the id written as a UUID; any other text unchanged."""
    return from_uuid(uuid.UUID(text), prefix=prefix) if UUID_TEXT.fullmatch(text) else text


def base62(number: int, *, length: int) -> str:
    """Return a number in base 62, most significant digit first, padded with zeros to length."""
    pairs = []
    while number:
        number, rest = divmod(number, len(_PAIRS))
        pairs.append(_PAIRS[rest])
    return "".join(reversed(pairs)).lstrip("0").rjust(length, "0")
