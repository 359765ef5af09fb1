"""Event types that an endpoint can subscribe to."""

EVENT_TYPES = ("sent", "delivered", "bounced", "failed", "opened", "clicked", "unsubscribed", "complained", "deferred")
TYPE_PREFIX = "email."


def wire_type(kind: str) -> str:
    """Return the event type as spelled in the `type` member of a body."""
    return TYPE_PREFIX + kind
