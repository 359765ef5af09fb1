"""Events in the format of Resend's webhooks."""

from collections.abc import Mapping
from typing import Any

from core.delivery.bounces.reasons import FailureReason
from core.lib.ids import uuid_text
from events.kinds import EventBody, wire_type
from interfaces.compat.resend.receiving.resources import received_data
from interfaces.compat.resend.resources import SUPPRESSED
from webhooks.formats import WebhookFormat

RECEIVED = "received"
# Resend's type of each event of a recipient.
# https://resend.com/docs/dashboard/webhooks/event-types
TYPES = {
    "sent": "email.sent",
    "delivered": "email.delivered",
    "deferred": "email.delivery_delayed",
    "bounced": "email.bounced",
    "failed": "email.failed",
    "opened": "email.opened",
    "clicked": "email.clicked",
    "complained": "email.complained",
    "unsubscribed": "suppression.added",
    RECEIVED: "email.received",
}
# Subtypes of a bounce, by its reason; the others are General.
# https://resend.com/docs/dashboard/emails/email-bounces
BOUNCE_SUB_TYPES: dict[str, str] = {
    FailureReason.MAILBOX_FULL: "MailboxFull",
    FailureReason.TOO_LARGE: "MessageTooLarge",
    FailureReason.SPAM: "ContentRejected",
    FailureReason.VIRUS: "ContentRejected",
    FailureReason.POLICY: "ContentRejected",
}


def resend_type(kind: str) -> str:
    """Return Resend's type of an event."""
    return TYPES.get(kind) or wire_type(kind)


def _payload(event: EventBody) -> dict[str, Any]:
    """Return the payload of an event, given as the body of the standard format."""
    kind, data = event["event"], event["data"]
    if kind == RECEIVED:
        return {"type": TYPES[RECEIVED], "created_at": event["createdAt"], "data": received_data(data)}
    is_suppressed = kind == "failed" and data.get("reason") in SUPPRESSED
    return {
        "type": "email.suppressed" if is_suppressed else resend_type(kind),
        "created_at": event["createdAt"],
        "data": {
            "email_id": uuid_text(data["emailId"]),
            "created_at": event["createdAt"],
            "from": data["from"],
            "to": [data["to"]],
            "subject": data["subject"],
            **({"message_id": data["messageId"]} if data.get("messageId") else {}),
            "tags": dict(tag.partition(":")[::2] for tag in data["tags"]),
            **_details(event, is_suppressed=is_suppressed),
        },
    }


def _details(event: EventBody, *, is_suppressed: bool) -> dict[str, Any]:
    """Return the members that the type of an event adds to those of its email."""
    kind, data = event["event"], event["data"]
    message = data.get("message") or data.get("reason") or ""
    if is_suppressed:
        return {"suppressed": {"message": message, "type": "OnAccountSuppressionList", "diagnosticCode": []}}
    if kind == "bounced":
        sub_type = BOUNCE_SUB_TYPES.get(data.get("reason") or "", "General")
        codes = {"diagnosticCode": [f"smtp; {data.get('code') or ''} {message}"]}
        return {"bounce": {"message": message, "type": "Permanent", "subType": sub_type, **codes}}
    if kind == "failed":
        return {"failed": {"reason": message}}
    if kind == "clicked":
        unknown = {"ipAddress": "", "userAgent": ""}
        return {"click": {"link": data.get("url"), "timestamp": event["createdAt"], **unknown}}
    return _suppression(event) if kind == "unsubscribed" else {}


def _suppression(event: EventBody) -> dict[str, Any]:
    """Return the members of Resend's suppression: the address, and the email whose recipient unsubscribed."""
    return {
        "id": uuid_text(event["id"], prefix="evt_"),
        "email": event["data"]["to"],
        "origin": "manual",
        "source_id": uuid_text(event["data"]["emailId"]),
    }


def _svix_headers(body: bytes, standard: Mapping[str, str], secret: str) -> dict[str, str]:
    """Return the standard headers with the names that they have in the library of Svix."""
    return {f"svix-{name}": standard[f"webhook-{name}"] for name in ("id", "timestamp", "signature")}


FORMAT = WebhookFormat("resend", "Resend", TYPES.keys(), _payload, _svix_headers)
