"""Events in the format of SendGrid's event webhook, and its signature."""

import base64
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from core.delivery.bounces.reasons import RECIPIENT_FAULTS, FailureReason
from core.lib.ids import uuid_text
from events.kinds import EventBody
from interfaces.compat.sendgrid.receiving.format import RECEIVED_BODY
from webhooks.formats import WebhookFormat

# https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/event
EVENTS = {
    "sent": "processed",
    "delivered": "delivered",
    "bounced": "bounce",
    "failed": "dropped",
    "deferred": "deferred",
    "opened": "open",
    "clicked": "click",
    "unsubscribed": "unsubscribe",
    "complained": "spamreport",
}
# SendGrid's words for these reasons of an event `dropped`.
DROPPED: dict[str, str] = {
    "recipient_suppressed": "Bounced Address",
    "recipient_not_allowed": "Bounced Address",
    FailureReason.EXPIRED: "Expired",
}
# The address and program of a recipient, and the place of a link, are not recorded (docs/decisions/0291).
UNKNOWN_READER = {"ip": "", "useragent": ""}
FIRST_LINK = {"index": 0, "type": "html"}
# Posted as by the inbound parse webhook.
RECEIVED = "received"
KEY_PURPOSE = b"postrider sendgrid event webhook"
# Order of the group of P-256 (FIPS 186-4, section D.1.2.3).
GROUP_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


def _payload(event: EventBody) -> list[dict[str, Any]]:
    """Return the batch of one event, given as the body of the standard format."""
    kind, data = event["event"], event["data"]
    return [
        {
            **{name: str(value) for name, value in (data["metadata"] or {}).items()},
            "email": data["to"],
            "timestamp": int(datetime.fromisoformat(event["createdAt"]).timestamp()),
            "event": EVENTS[kind],
            "sg_event_id": event["id"],
            "sg_message_id": uuid_text(data["emailId"]),
            **({"smtp-id": data["messageId"]} if data.get("messageId") else {}),
            "category": data["tags"],
            **_details(kind, data),
        }
    ]


def verification_key(secret: str) -> str:
    """Return the public key of an endpoint, in the form in which SendGrid shows it."""
    public = _key_pair(secret).public_key()
    return base64.b64encode(public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).decode()


def _signature_headers(body: bytes, standard: Mapping[str, str], secret: str) -> dict[str, str]:
    """Return the signature headers: ECDSA over timestamp and body."""
    timestamp = standard["webhook-timestamp"]
    signature = _key_pair(secret).sign(timestamp.encode() + body, ec.ECDSA(SHA256()))
    return {
        "x-twilio-email-event-webhook-signature": base64.b64encode(signature).decode(),
        "x-twilio-email-event-webhook-timestamp": timestamp,
    }


def _key_pair(secret: str) -> ec.EllipticCurvePrivateKey:
    """Return the key pair derived from an endpoint's secret: it is stored sealed, and rotated with it."""
    # 16 bytes more than the order has, so that the remainder is uniform (FIPS 186-4, section B.4.1).
    seed = HKDF(SHA256(), length=48, salt=None, info=KEY_PURPOSE).derive(secret.encode())
    return ec.derive_private_key(int.from_bytes(seed) % (GROUP_ORDER - 1) + 1, ec.SECP256R1())


def _details(kind: str, data: dict[str, Any]) -> dict[str, Any]:
    reason, code = data.get("message") or data.get("reason"), data.get("enhancedCode") or data.get("code")
    if kind == "bounced":
        type_ = "bounce" if data.get("reason") in RECIPIENT_FAULTS else "blocked"
        return {"type": type_, "reason": reason, "status": str(code or "")}
    if kind == "failed":
        return {"reason": DROPPED.get(data.get("reason") or "", reason)}
    if kind in {"delivered", "deferred"}:
        return {"response": reason or ""}
    if kind == "clicked":
        return {**UNKNOWN_READER, "url": data.get("url"), "url_offset": FIRST_LINK}
    return UNKNOWN_READER if kind == "opened" else {}


FORMAT = WebhookFormat(
    "sendgrid",
    "SendGrid",
    (*EVENTS, RECEIVED),
    _payload,
    _signature_headers,
    verification_key,
    large={RECEIVED: RECEIVED_BODY},
)
