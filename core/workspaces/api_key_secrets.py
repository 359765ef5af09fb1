"""Format of keys: `pr_<id>_<256 random bits><checksum>`, or with `pr_test_` (docs/specification.md, Authentication).

The checksum detects mistyped keys without a database query, and lets secret scanners avoid false positives.
See docs/decisions/0003.
"""

import hashlib
import hmac
import re
import secrets
import zlib
from dataclasses import dataclass

from core.lib.ids import base62
from core.lib.keyring import DerivedKey, UnknownKey, key_named, newest_key

PURPOSE = "api-key"
# Prefixes of ids by those of keys: API keys, test keys, and keys of the management API.
ID_PREFIXES = {"pr_": "key_", "pr_test_": "key_", "pra_": "mkey_"}
KEY_PATTERN = re.compile(rf"({'|'.join(ID_PREFIXES)})([0-9A-Za-z]{{22}})_([0-9A-Za-z]{{43}})([0-9A-Za-z]{{6}})")


@dataclass(frozen=True)
class KeySecret:
    """The id and the secret of a key; `text` is the whole key."""

    id: str
    secret: str
    prefix: str = "pr_"

    @property
    def text(self) -> str:
        body = f"{self.prefix}{self.id.removeprefix(ID_PREFIXES[self.prefix])}_{self.secret}"
        return body + _checksum(body)

    def __repr__(self) -> str:
        return f"KeySecret(id={self.id!r})"


def new_secret(key_id: str, *, prefix: str = "pr_") -> KeySecret:
    return KeySecret(key_id, base62(secrets.randbits(256), length=43), prefix)


def parse_key(text: str) -> KeySecret | None:
    """Return the parts of a well-formed key, None for anything else."""
    match = KEY_PATTERN.fullmatch(text)
    if match is None or _checksum(text[:-6]) != match[4]:
        return None
    return KeySecret(id=f"{ID_PREFIXES[match[1]]}{match[2]}", secret=match[3], prefix=match[1])


def hash_secret(secret: str, *, purpose: str = PURPOSE) -> str:
    """Return the stored hash: the pepper's id, and HMAC-SHA256 of the secret with the pepper as key."""
    return _hash(secret, newest_key(purpose))


def secret_matches(secret: str, secret_hash: str, *, purpose: str = PURPOSE) -> bool:
    """Compare a secret with a stored hash in constant time. Returns False if its pepper is no longer in APP_KEYS."""
    try:
        expected = _hash(secret, key_named(secret_hash.partition(":")[0], purpose))
    except UnknownKey:
        return False
    return hmac.compare_digest(expected, secret_hash)


def _hash(secret: str, pepper: DerivedKey) -> str:
    return f"{pepper.id}:{hmac.new(pepper.secret, secret.encode(), hashlib.sha256).hexdigest()}"


def _checksum(body: str) -> str:
    return base62(zlib.crc32(body.encode()), length=6)
