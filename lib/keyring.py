"""The keys of the installation: one derived key per purpose, newest entry first (APP_KEYS).

The raw entries never leave this file: what is used is derived by HKDF (RFC 5869) with the purpose as
info, so that a token of one purpose can never pass for another.
"""

import functools
from dataclasses import dataclass

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings


class UnknownKey(LookupError):
    """Raised when something was made with an entry that APP_KEYS no longer has."""


@dataclass(frozen=True)
class DerivedKey:
    id: str
    secret: bytes

    def __repr__(self) -> str:
        return f"DerivedKey(id={self.id!r})"


def newest_key(purpose: str) -> DerivedKey:
    """Return the key that new things of a purpose are made with."""
    return _derived(settings.APP_KEYS[0][0], purpose)


def key_named(key_id: str, purpose: str) -> DerivedKey:
    """Return the key that an older thing names. Raises UnknownKey."""
    return _derived(key_id, purpose)


@functools.lru_cache(maxsize=256)
def _derived(key_id: str, purpose: str) -> DerivedKey:
    secret = dict(settings.APP_KEYS).get(key_id)
    if secret is None:
        raise UnknownKey(f"APP_KEYS has no entry {key_id!r}")
    hkdf = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"postrider/" + purpose.encode())
    return DerivedKey(id=key_id, secret=hkdf.derive(secret))
