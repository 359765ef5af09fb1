"""Keys of the installation: one derived key per purpose from each entry of APP_KEYS, newest entry first.

The raw entries never leave this module: callers get keys derived by HKDF (RFC 5869) with the purpose as info, so that
a token of one purpose is never valid for another.
"""

import functools
from dataclasses import dataclass

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings


class UnknownKey(LookupError):
    """Raised for data made with an entry that is no longer in APP_KEYS."""


@dataclass(frozen=True)
class DerivedKey:
    id: str
    secret: bytes

    def __repr__(self) -> str:
        return f"DerivedKey(id={self.id!r})"


def newest_key(purpose: str) -> DerivedKey:
    """Return the key that encrypts new data of a purpose."""
    return _derived(settings.APP_KEYS[0][0], purpose)


def key_named(key_id: str, purpose: str) -> DerivedKey:
    """Return the key with the given id, to read existing data. Raises UnknownKey."""
    return _derived(key_id, purpose)


@functools.lru_cache(maxsize=256)
def _derived(key_id: str, purpose: str) -> DerivedKey:
    secret = dict(settings.APP_KEYS).get(key_id)
    if secret is None:
        raise UnknownKey(f"APP_KEYS has no entry {key_id!r}")
    hkdf = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"postrider/" + purpose.encode())
    return DerivedKey(id=key_id, secret=hkdf.derive(secret))
