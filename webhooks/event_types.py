"""Event types that an endpoint can subscribe to."""

# Events of a recipient, in every format of endpoints.
RECIPIENT_EVENTS = (
    "sent", "delivered", "bounced", "failed", "opened", "clicked", "unsubscribed", "complained", "deferred",
)  # fmt: skip
# Events in the standard format only: the other services have no such events, or with another meaning.
STANDARD_EVENTS = (
    "scheduled", "suppressed", "domain.verified", "domain.failed", "suppression.added", "suppression.removed",
)  # fmt: skip
EVENT_TYPES = RECIPIENT_EVENTS + STANDARD_EVENTS
TYPE_PREFIX = "email."


def wire_type(kind: str) -> str:
    """Return the event type as spelled in the `type` member of a body: `email.sent`, `domain.verified`."""
    return kind if "." in kind else TYPE_PREFIX + kind
