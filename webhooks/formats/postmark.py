"""Events in the format of Postmark's webhooks, and its types of bounces."""

from typing import Any

from delivery.bounces.reasons import RECIPIENT_FAULTS, FailureReason
from lib.ids import to_uuid, uuid_text

SAFE_INTEGER = (1 << 53) - 1
STREAM = "outbound"
# Types and codes of bounces that are neither the recipient's fault nor a block.
BOUNCE_TYPES: dict[str, tuple[str, int]] = {
    FailureReason.MAILBOX_FULL: ("SoftBounce", 4096),
    FailureReason.BAD_ADDRESS: ("BadEmailAddress", 100000),
    FailureReason.DNS: ("DnsError", 256),
    FailureReason.SPAM: ("SpamNotification", 512),
    FailureReason.VIRUS: ("VirusNotification", 8192),
    "recipient_suppressed": ("ManuallyDeactivated", 100002),
}
# The record type of an event and the name of its time.
RECORDS = {
    "sent": ("Sent", "ReceivedAt"),
    "delivered": ("Delivery", "DeliveredAt"),
    "bounced": ("Bounce", "BouncedAt"),
    "failed": ("Bounce", "BouncedAt"),
    "deferred": ("Bounce", "BouncedAt"),
    "complained": ("SpamComplaint", "BouncedAt"),
    "opened": ("Open", "ReceivedAt"),
    "clicked": ("Click", "ReceivedAt"),
    "unsubscribed": ("SubscriptionChange", "ChangedAt"),
}


def bounce_type(reason: str) -> tuple[str, int]:
    """Return Postmark's type and code of a bounce with a reason."""
    return BOUNCE_TYPES.get(reason, ("HardBounce", 1) if reason in RECIPIENT_FAULTS else ("Blocked", 100006))


def postmark_payload(event: dict[str, Any]) -> dict[str, Any]:
    """Return the payload of an event, given as the body of the standard format."""
    kind, data = event["event"], event["data"]
    record_type, time_name = RECORDS[kind]
    is_bounce = time_name == "BouncedAt"
    return {
        "RecordType": record_type,
        "MessageID": uuid_text(data["emailId"]),
        "MessageStream": STREAM,
        "ServerID": 0,
        "Tag": data["tags"][0] if data["tags"] else "",
        "Metadata": data["metadata"] or {},
        "Email" if is_bounce else "Recipient": data["to"],
        "From": data["from"],
        "Subject": data["subject"],
        time_name: event["createdAt"],
        "Details": data.get("message") or "",
        **(_bounce(event) if is_bounce else {}),
        **({"OriginalLink": data.get("url"), "ClickLocation": "HTML"} if kind == "clicked" else {}),
        **(UNSUBSCRIBED if kind == "unsubscribed" else {}),
    }


UNSUBSCRIBED = {"SuppressSending": True, "SuppressionReason": "ManualSuppression", "Origin": "Recipient"}


def _bounce(event: dict[str, Any]) -> dict[str, Any]:
    name, code = _type_of(event)
    return {
        "ID": to_uuid(event["id"], prefix="evt_").int & SAFE_INTEGER,
        "Type": name,
        "TypeCode": code,
        "Name": name,
        "Description": event["data"].get("message") or "",
        "DumpAvailable": False,
        "Inactive": name in {"HardBounce", "SpamComplaint"},
        "CanActivate": name != "SpamComplaint",
    }


def _type_of(event: dict[str, Any]) -> tuple[str, int]:
    if event["event"] == "complained":
        return "SpamComplaint", 100001
    if event["event"] == "deferred":
        return "Transient", 2
    return bounce_type(event["data"].get("reason") or "")
