"""The kinds of event that an endpoint can subscribe to."""

KINDS = ("sent", "delivered", "bounced", "failed", "opened", "clicked", "unsubscribed", "complained", "deferred")
PREFIX = "email."


def type_of(kind: str) -> str:
    """Return the kind as `type` of a body spells it."""
    return PREFIX + kind
