"""Whether the built-in inbox gets the emails of this installation."""

from django.conf import settings
from django.http import HttpRequest

from console.dashboard.auth.current_workspace import has_captured
from core.delivery.recipients import Diversion


def has_inbox() -> bool:
    """Return whether emails stay in the inbox: as their transport, or because they are captured."""
    setting = settings.RECIPIENTS
    captures = setting.diversion is Diversion.CAPTURED or (setting.rules and setting.rules.captures)
    return settings.DELIVERY_TRANSPORT == "inbox" or bool(captures)


def uses_inbox(request: HttpRequest) -> bool:
    """Return whether the current workspace has an inbox: rules of workspaces and keys capture as well."""
    return has_inbox() or has_captured(request)
