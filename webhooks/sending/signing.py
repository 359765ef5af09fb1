"""Headers of webhook requests. A plain HMAC takes one line to verify; Standard Webhooks prevents replay."""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Sequence

PREFIX = "whsec_"
SECRET_BYTES = 32

PLAIN = "x-service-signature"
PREVIOUS = "x-service-signature-previous"
# Headers besides the signatures.
HEADERS = {
    "content-type": "application/json",
    "user-agent": "Postrider-Webhooks/1.2",
    "accept": "*/*",
    # Responses are stored as received and never decompressed.
    "accept-encoding": "identity",
}


def new_secret() -> str:
    """Return a new secret.

    The plain signature uses the whole text as its key, the standard one the decoded base64 part.
    """
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def plain_signature(body: bytes, secret: str) -> str:
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def standard_signature(body: bytes, secret: str, *, message_id: str, timestamp: int) -> str:
    """Sign `id.timestamp.body` (Standard Webhooks 1.0, "Signature scheme")."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    digest = hmac.new(key, f"{message_id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def signature_headers(body: bytes, *, message_id: str, timestamp: int, keys: Sequence[str]) -> dict[str, str]:
    """Return the signature headers of one attempt.

    message_id: the event id, the same for every attempt.
    timestamp: Unix seconds of this attempt.
    keys: the currently valid secrets, newest first; a rotated secret keeps signing for 24 hours.
    """
    newest, *older = keys
    headers = {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(
            standard_signature(body, key, message_id=message_id, timestamp=timestamp) for key in keys
        ),
        PLAIN: plain_signature(body, newest),
    }
    if older:
        headers[PREVIOUS] = " ".join(plain_signature(body, key) for key in older)
    return headers
