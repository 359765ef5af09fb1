"""Secrets at rest: AES-256-GCM, bound to the row that stores them.

The row's id is the additional authenticated data, so a sealed value copied to another row cannot be decrypted.
Format: key id, a dot, base64 of nonce and ciphertext.
"""

import base64
import secrets

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from core.lib.keyring import key_named, newest_key

NONCE_BYTES = 12


def seal(plain: bytes, *, purpose: str, row: str) -> str:
    """Encrypt a secret for one row, with the newest key."""
    key = newest_key(purpose)
    nonce = secrets.token_bytes(NONCE_BYTES)
    sealed = AESGCM(key.secret).encrypt(nonce, plain, row.encode())
    return f"{key.id}.{base64.b64encode(nonce + sealed).decode()}"


def unseal(sealed: str, *, purpose: str, row: str) -> bytes:
    """Decrypt a value sealed for the same purpose and row.

    Raises cryptography's InvalidTag for any other value, UnknownKey when its key is no longer in APP_KEYS.
    """
    key_id, _, encoded = sealed.partition(".")
    data = base64.b64decode(encoded)
    return AESGCM(key_named(key_id, purpose).secret).decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], row.encode())
