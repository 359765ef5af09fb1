"""Webhook signatures and their verification."""

import base64
import binascii
import hashlib
import hmac
import json
import re
import secrets
import time
from collections.abc import Iterable
from typing import Optional, Protocol, Union

from postrider_client.base_errors import WebhookVerificationError
from postrider_client.other_answers import WebhookEvent
from postrider_client.wire import read

SECRET_PREFIX = "whsec_"  # noqa: S105 - the prefix of all secrets
TOLERANCE_SECONDS = 300
SECRET_BYTES = 32


class Headers(Protocol):
    """All headers of a request: a dict, or the headers of Django, Flask, Starlette or http.server."""

    def items(self) -> Iterable[tuple[str, str]]: ...


def verify_webhook(
    raw_body: Union[bytes, str],
    header: Union[str, Headers],
    secret: str,
    *,
    tolerance_seconds: float = TOLERANCE_SECONDS,
) -> WebhookEvent:
    """Return the event if the signature is valid. Raises WebhookVerificationError.

    header: the value of `x-service-signature`, or all headers. All headers must include a Standard Webhooks signature
    (`webhook-id`, `webhook-timestamp`, `webhook-signature`), and deliveries older than the tolerance are rejected:
    an attacker must not be able to replay a delivery by leaving headers out.
    secret: the secret of the webhook, `whsec_…`. After a rotation the old secret stays valid for 24 hours; to verify
    `x-service-signature` with it, pass the value of `x-service-signature-previous`.
    """
    body = _bytes_of(raw_body)
    if not isinstance(secret, str) or not secret.startswith(SECRET_PREFIX):
        raise WebhookVerificationError(f"The secret must begin with {SECRET_PREFIX}.")
    if isinstance(header, str):
        _check_signature(body, header, secret)
    else:
        _check_standard_signature(body, header, secret, tolerance_seconds)
    return read(WebhookEvent, json.loads(body))


class WebhookVerification:
    """`client.webhooks.verify`."""

    @staticmethod
    def verify(
        raw_body: Union[bytes, str],
        header: Union[str, Headers],
        secret: str,
        *,
        tolerance_seconds: float = TOLERANCE_SECONDS,
    ) -> WebhookEvent:
        """Verify a webhook request. See `verify_webhook`, which works without a client."""
        return verify_webhook(raw_body, header, secret, tolerance_seconds=tolerance_seconds)


def new_webhook_secret() -> str:
    """Return a random secret of the same form as those of the service."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def sign_webhook(body: bytes, secret: str, *, message_id: str, timestamp: Optional[int] = None) -> dict[str, str]:
    """Return the signature headers with which the service sends a body, for tests of receivers.

    message_id: the id of the event.
    timestamp: Unix seconds, by default now.
    Raises WebhookVerificationError for an invalid secret.
    """
    key = _decoded(secret[len(SECRET_PREFIX) :]) if secret.startswith(SECRET_PREFIX) else None
    if key is None:
        raise WebhookVerificationError(f"The secret must be {SECRET_PREFIX} and base64.")
    seconds = str(int(time.time()) if timestamp is None else timestamp)
    return {
        "webhook-id": message_id,
        "webhook-timestamp": seconds,
        "webhook-signature": _standard_signature(body, key, message_id=message_id, timestamp=seconds).decode(),
        "x-service-signature": _plain_signature(body, secret),
    }


def _plain_signature(body: bytes, secret: str) -> str:
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def _standard_signature(body: bytes, key: bytes, *, message_id: str, timestamp: str) -> bytes:
    signed = f"{message_id}.{timestamp}.".encode() + body
    return b"v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())


def _bytes_of(raw_body: Union[bytes, str]) -> bytes:
    if isinstance(raw_body, str):
        return raw_body.encode()
    if isinstance(raw_body, (bytes, bytearray, memoryview)):
        return bytes(raw_body)
    raise WebhookVerificationError(
        "raw_body must be the unparsed body, bytes or str. A parsed object cannot be verified: use request.body "
        "(Django), request.get_data() (Flask) or await request.body() (Starlette)."
    )


def _check_signature(body: bytes, header: str, secret: str) -> None:
    expected = _plain_signature(body, secret)
    # x-service-signature-previous has one signature for each old secret that is still valid.
    if not any(hmac.compare_digest(one.encode(), expected.encode()) for one in header.split(" ")):
        raise WebhookVerificationError("The value of x-service-signature does not match this body and secret.")


def _check_standard_signature(body: bytes, headers: Headers, secret: str, tolerance_seconds: float) -> None:
    given = {name.lower(): value for name, value in headers.items()}
    for name in ("webhook-id", "webhook-timestamp", "webhook-signature"):
        if not given.get(name):
            raise WebhookVerificationError(
                f"The header {name} is missing. To verify x-service-signature, pass its value instead of all headers."
            )
    _check_time(given["webhook-timestamp"], tolerance_seconds)
    key = _decoded(secret[len(SECRET_PREFIX) :])
    if key is None:
        raise WebhookVerificationError("The secret is incomplete.")
    expected = _standard_signature(body, key, message_id=given["webhook-id"], timestamp=given["webhook-timestamp"])
    if not any(hmac.compare_digest(one.encode(), expected) for one in given["webhook-signature"].split(" ")):
        raise WebhookVerificationError("No signature in webhook-signature matches this body and secret.")


def _check_time(timestamp: str, tolerance_seconds: float) -> None:
    is_number = re.fullmatch(r"[0-9]{1,12}", timestamp)
    if not is_number or abs(time.time() - int(timestamp)) > tolerance_seconds:
        raise WebhookVerificationError(
            f"webhook-timestamp is not within {tolerance_seconds} s of this machine's clock."
        )


def _decoded(text: str) -> Optional[bytes]:
    try:
        return base64.b64decode(text, validate=True) or None
    except binascii.Error:
        return None
