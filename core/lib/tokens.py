"""Tokens for links and return paths: a few encrypted bytes that only this installation can create or read.

AES-SIV (RFC 5297) is deterministic: the same payload gives the same token, so that a message and its return path are
identical on every attempt. Determinism reveals nothing here, since a token identifies its recipient anyway.
Each purpose has a derived key: a token of one purpose is invalid for every other.
"""

import base64
import binascii
import functools
import hashlib

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from django.conf import settings

from core.lib.keyring import key_named, newest_key

KEY_HINT_BYTES = 1
SIV_BYTES = 16


class InvalidToken(ValueError):
    """Raised for a text that is not a token of this purpose under a key of APP_KEYS."""


def make_token(payload: bytes, *, purpose: str) -> str:
    """Return a token for a URL: base64url without padding, 17 bytes longer than the payload."""
    return base64.urlsafe_b64encode(_encrypt(payload, purpose)).rstrip(b"=").decode()


def read_token(token: str, *, purpose: str) -> bytes:
    """Return the payload of a token. Raises InvalidToken."""
    try:
        data = base64.b64decode(token.encode() + b"=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise InvalidToken("not base64url") from error
    # The last character may carry unused bits; only the canonical encoding is valid.
    if base64.urlsafe_b64encode(data).rstrip(b"=").decode() != token:
        raise InvalidToken("not the canonical encoding")
    return _decrypt(data, purpose)


def make_local_part(payload: bytes, *, purpose: str) -> str:
    """Return a token for a local part: lower-case base32, since some hosts change the case of a local part."""
    return base64.b32encode(_encrypt(payload, purpose)).rstrip(b"=").decode().lower()


def read_local_part(token: str, *, purpose: str) -> bytes:
    """Return the payload of a local part, in upper or lower case. Raises InvalidToken."""
    upper = token.upper()
    try:
        data = base64.b32decode(upper.encode() + b"=" * (-len(upper) % 8))
    except (binascii.Error, UnicodeEncodeError) as error:
        raise InvalidToken("not base32") from error
    if base64.b32encode(data).rstrip(b"=").decode() != upper:
        raise InvalidToken("not the canonical encoding")
    return _decrypt(data, purpose)


def _encrypt(payload: bytes, purpose: str) -> bytes:
    key = newest_key(purpose)
    return _key_hint(key.id) + _cipher(key.id, purpose).encrypt(payload, None)


def _decrypt(data: bytes, purpose: str) -> bytes:
    hint, encrypted = data[:KEY_HINT_BYTES], data[KEY_HINT_BYTES:]
    # AES-SIV encrypts at least one byte.
    if len(encrypted) > SIV_BYTES:
        for key_id, _ in settings.APP_KEYS:
            if _key_hint(key_id) != hint:
                continue
            try:
                return _cipher(key_id, purpose).decrypt(encrypted, None)
            except InvalidTag:
                continue
    raise InvalidToken("not made with a known key")


@functools.lru_cache(maxsize=256)
def _cipher(key_id: str, purpose: str) -> AESSIV:
    return AESSIV(key_named(key_id, purpose).secret)


@functools.lru_cache(maxsize=256)
def _key_hint(key_id: str) -> bytes:
    """Return the byte that identifies, among our keys, the key of a token."""
    return hashlib.sha256(key_id.encode()).digest()[:KEY_HINT_BYTES]
