"""Events in the format of Postmark's webhooks, and its types of bounces."""

import json
from collections.abc import Mapping
from typing import Any

from core.delivery.bounces.reasons import RECIPIENT_FAULTS, FailureReason
from core.lib.ids import id_number, uuid_text
from events.kinds import EventBody
from interfaces.compat.postmark.names import shown_id
from interfaces.compat.postmark.receiving.format import RECEIVED_BODY
from streams.models import MAIN
from webhooks.formats import WebhookFormat

# Types and codes of bounces that are neither the recipient's fault nor a block.
# https://postmarkapp.com/developer/api/bounce-api#bounce-types
BOUNCE_TYPES: dict[str, tuple[str, int]] = {
    FailureReason.MAILBOX_FULL: ("SoftBounce", 4096),
    FailureReason.BAD_ADDRESS: ("BadEmailAddress", 100000),
    FailureReason.DNS: ("DnsError", 256),
    FailureReason.SPAM: ("SpamNotification", 512),
    FailureReason.VIRUS: ("VirusNotification", 8192),
    FailureReason.EXPIRED: ("Transient", 2),
    "recipient_suppressed": ("ManuallyDeactivated", 100002),
    "recipient_not_allowed": ("ManuallyDeactivated", 100002),
}
COMPLAINT = "SpamComplaint"
BOUNCE_TYPE_NAMES = (
    "HardBounce", "Transient", "Unsubscribe", "Subscribe", "AutoResponder", "AddressChange", "DnsError",
    "SpamNotification", "OpenRelayTest", "Unknown", "SoftBounce", "VirusNotification", "ChallengeVerification",
    "BadEmailAddress", "SpamComplaint", "ManuallyDeactivated", "Unconfirmed", "Blocked", "SMTPApiError", "InboundError",
    "DMARCPolicy", "TemplateRenderingFailed",
)  # fmt: skip
# Types and codes of events whose reason does not matter.
EVENT_BOUNCE_TYPES = {"complained": (COMPLAINT, 100001), "deferred": ("Transient", 2)}
# A received email has no record type.
RECEIVED = "received"
# The record type of an event and the name of its time.
# https://postmarkapp.com/developer/webhooks/webhooks-overview
RECORDS = {
    "sent": ("Sent", "ReceivedAt"),
    "delivered": ("Delivery", "DeliveredAt"),
    "bounced": ("Bounce", "BouncedAt"),
    "failed": ("Bounce", "BouncedAt"),
    "deferred": ("Bounce", "BouncedAt"),
    "complained": (COMPLAINT, "BouncedAt"),
    "opened": ("Open", "ReceivedAt"),
    "clicked": ("Click", "ReceivedAt"),
    "unsubscribed": ("SubscriptionChange", "ChangedAt"),
}


def event_bounce_type(kind: str, reason: str) -> tuple[str, int]:
    """Return Postmark's type and code of an event with a reason."""
    if kind in EVENT_BOUNCE_TYPES:
        return EVENT_BOUNCE_TYPES[kind]
    return BOUNCE_TYPES.get(reason, ("HardBounce", 1) if reason in RECIPIENT_FAULTS else ("Blocked", 100006))


def metadata_texts(metadata: Mapping[str, Any] | None) -> dict[str, str]:
    """Return metadata with values that are texts, as they always are in Postmark's API."""
    return {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in (metadata or {}).items()
    }


def _payload(event: EventBody) -> dict[str, Any]:
    """Return the payload of an event, given as the body of the standard format."""
    kind, data = event["event"], event["data"]
    record_type, time_name = RECORDS[kind]
    is_bounce = time_name == "BouncedAt"
    return {
        "RecordType": record_type,
        "MessageID": uuid_text(data["emailId"]),
        "MessageStream": shown_id(data.get("stream") or MAIN),
        "ServerID": 0,
        "Tag": data["tags"][0] if data["tags"] else "",
        "Metadata": metadata_texts(data["metadata"]),
        "Email" if is_bounce else "Recipient": data["to"],
        "From": data["from"],
        "Subject": data["subject"],
        time_name: event["createdAt"],
        "Details": data.get("message") or "",
        **(_bounce(event) if is_bounce else {}),
        **(UNKNOWN_READER if kind in {"opened", "clicked"} else {}),
        **({"FirstOpen": data.get("first", False), "ReadSeconds": 0} if kind == "opened" else {}),
        **({"OriginalLink": data.get("url"), "ClickLocation": "HTML"} if kind == "clicked" else {}),
        **(UNSUBSCRIBED if kind == "unsubscribed" else {}),
    }


# The program and the place of a recipient are not recorded.
# https://postmarkapp.com/developer/webhooks/open-tracking-webhook
UNKNOWN_PROGRAM = {"Name": "", "Company": "", "Family": ""}
UNKNOWN_READER = {
    "Client": UNKNOWN_PROGRAM,
    "OS": UNKNOWN_PROGRAM,
    "Platform": "Unknown",
    "UserAgent": "",
    "Geo": {},
}
UNSUBSCRIBED = {"SuppressSending": True, "SuppressionReason": "ManualSuppression", "Origin": "Recipient"}


def _bounce(event: EventBody) -> dict[str, Any]:
    name, code = event_bounce_type(event["event"], event["data"].get("reason") or "")
    return {
        "ID": id_number(event["id"], prefix="evt_"),
        "Type": name,
        "TypeCode": code,
        "Name": name,
        "Description": event["data"].get("message") or "",
        "DumpAvailable": False,
        "Inactive": name in {"HardBounce", COMPLAINT},
        "CanActivate": name != COMPLAINT,
    }


# At Postmark, 403 ends the attempts: https://postmarkapp.com/developer/webhooks/webhooks-overview.
FORMAT = WebhookFormat(
    "postmark",
    "Postmark",
    (*RECORDS, RECEIVED),
    _payload,
    large={RECEIVED: RECEIVED_BODY},
    final_statuses=frozenset({403}),
)
