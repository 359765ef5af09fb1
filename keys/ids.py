"""Opaque ids: 32 bits of time and 96 random bits.

Sixteen bytes fit PostgreSQL's uuid type; the seconds in front keep new rows side by side in every
index. On the wire an id is 22 characters of base 62, after a prefix where the kind has one.
See docs/decisions/0002.
"""

import functools
import secrets
import time
import uuid

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
LENGTH = 22
REMEMBERED = 8192
_VALUES = {character: value for value, character in enumerate(ALPHABET)}
_LIMIT = 1 << 128


class InvalidId(ValueError):
    """Raised when a text is not an id of the kind asked for."""


def new_id(prefix: str = "") -> str:
    """Return a fresh id such as `tpl_0T4qWx…`; ids made in a later second sort later."""
    return prefix + base62((int(time.time()) << 96) | secrets.randbits(96), length=LENGTH)


# A worker turns each id over some ten times on an email's way; what is remembered costs a hundredth.
@functools.lru_cache(maxsize=REMEMBERED)
def to_uuid(text: str, *, prefix: str = "") -> uuid.UUID:
    """Return the sixteen bytes behind an id. Raises InvalidId for anything else."""
    body = text.removeprefix(prefix)
    if not text.startswith(prefix) or len(body) != LENGTH or not _VALUES.keys() >= set(body):
        raise InvalidId(f"{text!r} is not an id")
    number = 0
    for character in body:
        number = number * 62 + _VALUES[character]
    if number >= _LIMIT:
        raise InvalidId(f"{text!r} is not an id")
    return uuid.UUID(int=number)


@functools.lru_cache(maxsize=REMEMBERED)
def from_uuid(value: uuid.UUID, *, prefix: str = "") -> str:
    return prefix + base62(value.int, length=LENGTH)


def base62(number: int, *, length: int) -> str:
    """Write a number in base 62, most significant first, filled with zeros to length."""
    digits = []
    while number:
        number, rest = divmod(number, 62)
        digits.append(ALPHABET[rest])
    return "".join(reversed(digits)).rjust(length, "0")
