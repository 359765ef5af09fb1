"""Sample events for webhook tests, of an email that does not exist (docs/decisions/0037)."""

from typing import Any

from django.utils import timezone

from core.lib.ids import new_id
from events.rendering import RenderedEvent
from webhooks.models import Webhook

EMAIL = {
    "emailId": "0Uf7m2kQ9VxHc3NwZrTb4L",
    "messageId": "<0Uf7m2kQ9VxHc3NwZrTb4M@demo.example>",
    "to": "ada@example.com",
    "from": "Demo <hello@demo.example>",
    "subject": "A test of your webhook",
    "tags": ["test"],
    "metadata": {"orderId": "1815"},
}
UNKNOWN_USER = {"code": 550, "enhancedCode": "5.1.1", "message": "5.1.1 No such user here", "reason": "unknown_user"}
GIVEN_UP = {"code": 451, "enhancedCode": "4.7.1", "message": "4.7.1 Try again later", "reason": "temporary"}
APPROVER = {"kind": "person", "name": "grace@example.com"}
# Members that each event type adds to the email's, with the resulting recipient status.
SAMPLES: dict[str, dict[str, Any]] = {
    "sent": {"status": "sent"},
    "delivered": {"status": "delivered"},
    "bounced": {"status": "bounced", **UNKNOWN_USER},
    "failed": {"status": "failed", **GIVEN_UP},
    "deferred": {"status": "queued", **GIVEN_UP},
    "opened": {"status": "opened", "machine": False, "first": True},
    "clicked": {"status": "clicked", "machine": False, "first": True, "url": "https://example.com/"},
    "unsubscribed": {"status": "delivered"},
    "complained": {"status": "delivered"},
    "replied": {"status": "delivered", "inboundId": "inb_0Uf7m2kQ9VxHc3NwZrTb4L"},
    "held": {"status": "queued", "reason": "approval", "expiresAt": "2026-11-27T09:12:31.482Z"},
    "approved": {"status": "queued", "by": APPROVER},
    "rejected": {"status": "cancelled", "by": APPROVER, "reason": "The price is wrong."},
    "scheduled": {"status": "scheduled", "scheduledFor": "2026-11-21T06:20:00.000Z"},
}
DOMAIN = {"domainId": "dom_0Uf7m2kQ9VxHc3NwZrTb4L", "name": "demo.example"}
SUPPRESSION = {"suppressionId": "sup_0Uf7m2kQ9VxHc3NwZrTb4L", "email": "ada@example.com", "reason": "bounce"}
ALERT = {"alertId": "alr_0Uf7m2kQ9VxHc3NwZrTb4L", "metric": "bounce_rate", "threshold": 4}
RECEIVED: dict[str, Any] = {
    "id": "inb_0Uf7m2kQ9VxHc3NwZrTb4L",
    "status": "processed",
    "routeId": None,
    "recipient": "support@in.demo.example",
    "tag": "",
    "envelopeFrom": "ada@example.com",
    "from": {"email": "ada@example.com", "name": "Ada"},
    "to": [{"email": "support@in.demo.example", "name": ""}],
    "cc": [],
    "replyTo": [],
    "subject": "A test of your webhook",
    "date": "2026-11-20T09:12:31.000Z",
    "messageId": "<a-test@example.com>",
    "inReplyTo": None,
    "references": [],
    "text": "Hello!",
    "textGenerated": False,
    "replyText": "Hello!",
    "html": "",
    "truncated": [],
    "headers": [
        ["From", "Ada <ada@example.com>"],
        ["To", "support@in.demo.example"],
        ["Subject", "A test of your webhook"],
        ["Message-ID", "<a-test@example.com>"],
        ["Date", "Fri, 20 Nov 2026 09:12:31 +0000"],
    ],
    "attachments": [],
    "replyToEmail": None,
    "authentication": None,
    "spam": None,
    "automatic": "no",
    "blockedReason": None,
    "parseErrors": [],
    "remote": {"ip": "192.0.2.7", "helo": "mx.example.com", "tls": "TLSv1.3"},
    "size": 612,
    "receivedAt": "2026-11-20T09:12:31.482Z",
    "expiresAt": "2026-11-27T09:12:31.482Z",
    "test": True,
    "raw": None,
}
# Events with other members.
OTHER_SAMPLES: dict[str, dict[str, Any]] = {
    "suppressed": {"emailId": EMAIL["emailId"], "to": EMAIL["to"], "reason": "recipient_suppressed"},
    "domain.verified": {**DOMAIN, "status": "verified"},
    "domain.failed": {**DOMAIN, "status": "failed"},
    "domain.auth_failing": {**DOMAIN, "messages": 400, "aligned": 380},
    "domain.spoofed": {**DOMAIN, "date": "2026-11-20", "messages": 4200, "usual": 12},
    "domain.replay": {**DOMAIN, "organization": "google", "messages": 5200, "sent": 900},
    "suppression.added": SUPPRESSION,
    "suppression.removed": SUPPRESSION,
    "received": RECEIVED,
    "alert.triggered": {**ALERT, "value": 4.25},
    "alert.resolved": {**ALERT, "value": 3.5},
}


def sample_for(webhook: Webhook) -> RenderedEvent:
    """Return a test event of the first event type that the endpoint gets."""
    kind = next(iter(webhook.kinds), "delivered")
    return RenderedEvent(
        workspace_id=webhook.workspace_id,
        kind=kind,
        id=new_id("evt_"),
        created_at=timezone.now(),
        data=OTHER_SAMPLES.get(kind) or {**EMAIL, **SAMPLES[kind]},
        is_test=True,
    )
