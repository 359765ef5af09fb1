"""Events in the format of Resend's webhooks."""

from typing import Any

from lib.ids import uuid_text
from webhooks.event_types import wire_type

SUPPRESSED = "recipient_suppressed"
# Resend's type of each event of a recipient.
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
}


def resend_type(kind: str) -> str:
    """Return Resend's type of an event."""
    return TYPES.get(kind) or wire_type(kind)


def resend_payload(event: dict[str, Any]) -> dict[str, Any]:
    """Return the payload of an event, given as the body of the standard format."""
    kind, data = event["event"], event["data"]
    is_suppressed = kind == "failed" and data.get("reason") == SUPPRESSED
    return {
        "type": "email.suppressed" if is_suppressed else resend_type(kind),
        "created_at": event["createdAt"],
        "data": {
            "email_id": uuid_text(data["emailId"]),
            "created_at": event["createdAt"],
            "from": data["from"],
            "to": [data["to"]],
            "subject": data["subject"],
            "tags": dict(tag.partition(":")[::2] for tag in data["tags"]),
            **_details(kind, data, is_suppressed=is_suppressed),
        },
    }


def _details(kind: str, data: dict[str, Any], *, is_suppressed: bool) -> dict[str, Any]:
    message = data.get("message") or data.get("reason") or ""
    if is_suppressed:
        return {"suppressed": {"message": message, "type": "OnAccountSuppressionList"}}
    if kind == "bounced":
        return {"bounce": {"message": message, "type": "Permanent", "subType": "General"}}
    if kind == "failed":
        return {"failed": {"reason": message}}
    if kind == "clicked":
        return {"click": {"link": data.get("url"), "ipAddress": "", "userAgent": "", "timestamp": None}}
    return {}
