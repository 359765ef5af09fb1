"""Shared addresses: the address of each workspace at RECEIVING_DOMAIN, without any DNS of the customer."""

import secrets
import string

from django.conf import settings
from django.db import IntegrityError, transaction

from core.workspaces.models import Workspace
from receiving.models import SharedAddress

LENGTH = 12


def shared_address(workspace: Workspace) -> str | None:
    """Return the address of a workspace, which gets it at the first call; None without RECEIVING_DOMAIN."""
    if not settings.RECEIVING_DOMAIN:
        return None
    address = SharedAddress.objects.filter(workspace=workspace).first() or _create(workspace)
    return f"{address.local_part}@{settings.RECEIVING_DOMAIN}"


def _create(workspace: Workspace) -> SharedAddress:
    local_part = "".join(secrets.choice(string.ascii_lowercase) for _ in range(LENGTH))
    try:
        with transaction.atomic():
            return SharedAddress.objects.get_or_create(workspace=workspace, defaults={"local_part": local_part})[0]
    except IntegrityError:
        # One of 26 to the power of 12 names was used already.
        return _create(workspace)
