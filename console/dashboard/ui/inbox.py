"""Whether the built-in inbox gets the emails of this installation."""

from django.conf import settings

from core.delivery.recipients import Diversion


def has_inbox() -> bool:
    """Return whether emails stay in the inbox: as their transport, or because they are captured."""
    return settings.DELIVERY_TRANSPORT == "inbox" or settings.RECIPIENTS.diversion is Diversion.CAPTURED
