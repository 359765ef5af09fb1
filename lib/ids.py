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
# Two digits at a time: the division of a long number is what costs.
_PAIRS = [high + low for high in ALPHABET for low in ALPHABET]
_VALUES = {character: value for value, character in enumerate(ALPHABET)}
_LIMIT = 1 << 128


class InvalidId(ValueError):
    """Raised when a text is not an id of the kind asked for."""


def new_id(prefix: str = "") -> str:
    """Return a fresh id such as `tpl_0T4qWx…`; ids made in a later second sort later."""
    return prefix + base62(_fresh(), length=LENGTH)


def new_uuid() -> uuid.UUID:
    """Return the sixteen bytes of a fresh id, for rows whose id nobody is told."""
    return uuid.UUID(int=_fresh())


def _fresh() -> int:
    return (int(time.time()) << 96) | secrets.randbits(96)


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
    pairs = []
    while number:
        number, rest = divmod(number, len(_PAIRS))
        pairs.append(_PAIRS[rest])
    return "".join(reversed(pairs)).lstrip("0").rjust(length, "0")
