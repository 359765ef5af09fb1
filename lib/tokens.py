"""Signed links and return paths: a token holds a few bytes that only we can read or make.

AES-SIV (RFC 5297) is deterministic: the same bytes make the same token, so that a message and its return
path are the same on every attempt, and nothing is lost by it, for a token says who it is for anyway.
One derived key per purpose: a token of one purpose opens nothing of another.
"""

import base64
import binascii
import functools
import hashlib

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from django.conf import settings

from lib.keyring import key_named, newest_key

HINT_BYTES = 1
SIV_BYTES = 16


class InvalidToken(ValueError):
    """Raised for a text that is no token of this purpose, made with one of our keys."""


def make_token(payload: bytes, *, purpose: str) -> str:
    """Return a token for a URL: base64url without padding, 17 bytes longer than the payload."""
    return base64.urlsafe_b64encode(_sealed(payload, purpose)).rstrip(b"=").decode()


def read_token(token: str, *, purpose: str) -> bytes:
    """Return the payload of a token. Raises InvalidToken."""
    try:
        data = base64.b64decode(token.encode() + b"=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise InvalidToken("not base64url") from error
    # The last character may carry bits that belong to no byte; only one spelling of a token is one.
    if base64.urlsafe_b64encode(data).rstrip(b"=").decode() != token:
        raise InvalidToken("another spelling")
    return _opened(data, purpose)


def make_local_part(payload: bytes, *, purpose: str) -> str:
    """Return a token for an address: base32 in lower case, since some hosts change the case of a local part."""
    return base64.b32encode(_sealed(payload, purpose)).rstrip(b"=").decode().lower()


def read_local_part(token: str, *, purpose: str) -> bytes:
    """Return the payload of a local part, in any case of letters. Raises InvalidToken."""
    upper = token.upper()
    try:
        data = base64.b32decode(upper.encode() + b"=" * (-len(upper) % 8))
    except (binascii.Error, UnicodeEncodeError) as error:
        raise InvalidToken("not base32") from error
    if base64.b32encode(data).rstrip(b"=").decode() != upper:
        raise InvalidToken("another spelling")
    return _opened(data, purpose)


def _sealed(payload: bytes, purpose: str) -> bytes:
    key = newest_key(purpose)
    return _hint(key.id) + _cipher(key.id, purpose).encrypt(payload, None)


def _opened(data: bytes, purpose: str) -> bytes:
    hint, sealed = data[:HINT_BYTES], data[HINT_BYTES:]
    # AES-SIV seals at least one byte.
    if len(sealed) > SIV_BYTES:
        for key_id, _ in settings.APP_KEYS:
            if _hint(key_id) != hint:
                continue
            try:
                return _cipher(key_id, purpose).decrypt(sealed, None)
            except InvalidTag:
                continue
    raise InvalidToken("not one of ours")


@functools.lru_cache(maxsize=256)
def _cipher(key_id: str, purpose: str) -> AESSIV:
    return AESSIV(key_named(key_id, purpose).secret)


@functools.lru_cache(maxsize=256)
def _hint(key_id: str) -> bytes:
    """Return the byte by which the key that made a token is found among ours."""
    return hashlib.sha256(key_id.encode()).digest()[:HINT_BYTES]
