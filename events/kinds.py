"""Event kinds: the one table that log, timelines, feed, webhooks and documentation read; the members of an event."""

from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict

from django.db import models

TYPE_PREFIX = "email."
# Members of a payload that name the operator's transports.
TRANSPORT, NEXT_TRANSPORT = "transport", "nextTransport"
# The member that says what an expired email waited for.
WAITED_FOR = "waitedFor"
# The member with the TLS of a direct delivery.
TLS = "tls"


class EventKind(models.TextChoices):
    """The name of a kind in the database, in filters and as a subscription of an endpoint."""

    QUEUED = "queued"
    SCHEDULED = "scheduled"
    SENT = "sent"
    DELIVERED = "delivered"
    BOUNCED = "bounced"
    FAILED = "failed"
    DEFERRED = "deferred"
    OPENED = "opened"
    CLICKED = "clicked"
    UNSUBSCRIBED = "unsubscribed"
    COMPLAINED = "complained"
    CANCELLED = "cancelled"
    SUPPRESSED = "suppressed"
    DOMAIN_VERIFIED = "domain.verified"
    DOMAIN_FAILED = "domain.failed"
    DOMAIN_AUTH_FAILING = "domain.auth_failing"
    DOMAIN_SPOOFED = "domain.spoofed"
    DOMAIN_REPLAY = "domain.replay"
    SUPPRESSION_ADDED = "suppression.added"
    SUPPRESSION_REMOVED = "suppression.removed"
    RECEIVED = "received"
    REPLIED = "replied"
    ALERT_TRIGGERED = "alert.triggered"
    ALERT_RESOLVED = "alert.resolved"
    HELD = "held"
    APPROVED = "approved"
    REJECTED = "rejected"


@dataclass(frozen=True)
class KindTraits:
    """The traits of a kind of event.

    on_timeline: an event of an email.
    is_rare: indexed for the filter of the list of emails.
    is_webhook: endpoints can subscribe to it.
    """

    on_timeline: bool = False
    is_rare: bool = False
    is_webhook: bool = False


FREQUENT = KindTraits(on_timeline=True, is_webhook=True)
RARE = KindTraits(on_timeline=True, is_rare=True, is_webhook=True)
OF_WORKSPACE = KindTraits(is_webhook=True)

# In the order in which the documentation lists the types of webhooks.
KINDS: dict[EventKind, KindTraits] = {
    EventKind.QUEUED: KindTraits(on_timeline=True),
    EventKind.SENT: FREQUENT,
    EventKind.DELIVERED: FREQUENT,
    EventKind.BOUNCED: RARE,
    EventKind.FAILED: RARE,
    EventKind.OPENED: FREQUENT,
    EventKind.CLICKED: FREQUENT,
    EventKind.UNSUBSCRIBED: RARE,
    EventKind.COMPLAINED: RARE,
    EventKind.DEFERRED: RARE,
    EventKind.CANCELLED: KindTraits(on_timeline=True, is_rare=True),
    EventKind.SCHEDULED: KindTraits(on_timeline=True, is_webhook=True),
    EventKind.SUPPRESSED: OF_WORKSPACE,
    EventKind.DOMAIN_VERIFIED: OF_WORKSPACE,
    EventKind.DOMAIN_FAILED: OF_WORKSPACE,
    EventKind.DOMAIN_AUTH_FAILING: OF_WORKSPACE,
    EventKind.DOMAIN_SPOOFED: OF_WORKSPACE,
    EventKind.DOMAIN_REPLAY: OF_WORKSPACE,
    EventKind.SUPPRESSION_ADDED: OF_WORKSPACE,
    EventKind.SUPPRESSION_REMOVED: OF_WORKSPACE,
    EventKind.RECEIVED: OF_WORKSPACE,
    EventKind.REPLIED: FREQUENT,
    EventKind.ALERT_TRIGGERED: OF_WORKSPACE,
    EventKind.ALERT_RESOLVED: OF_WORKSPACE,
    EventKind.HELD: FREQUENT,
    EventKind.APPROVED: FREQUENT,
    EventKind.REJECTED: FREQUENT,
}

EVENT_KINDS = tuple(EventKind.values)
TIMELINE_KINDS = tuple(kind.value for kind in EventKind if KINDS[kind].on_timeline)
# The order is that of the index event_rare.
RARE_KINDS = tuple(kind.value for kind in EventKind if KINDS[kind].is_rare)
# Attempts without a delivery. The order is that of the index event_failure.
FAILURE_KINDS = (EventKind.BOUNCED.value, EventKind.FAILED.value, EventKind.DEFERRED.value)
WEBHOOK_KINDS = tuple(kind.value for kind, traits in KINDS.items() if traits.is_webhook)


def kind_choices() -> list[tuple[str, str]]:
    """Return the choices of a kind: a function, so that a new kind needs no migration."""
    return list(EventKind.choices)


def wire_type(kind: str) -> str:
    """Return the event type as spelled in the `type` member of a body: `email.sent`, `domain.verified`."""
    return kind if "." in kind else TYPE_PREFIX + kind


class EventBody(TypedDict):
    """The JSON members of an event, the body of a webhook in the standard format. Only samples have `test`.

    cursor: the position, in pages and event streams of `/v1/events`.
    """

    id: str
    type: str
    event: str
    createdAt: str
    test: NotRequired[bool]
    cursor: NotRequired[str]
    data: dict[str, Any]
