"""Delete what was posted, with the emails that it tells of (workspaces.retention)."""

from collections.abc import Iterator
from datetime import timedelta

from django.utils import timezone

from webhooks.models import WebhookEvent

BATCH = 1000


def expired_events(workspace_id: str, age: timedelta) -> Iterator[None]:
    """Delete a workspace's events with their deliveries, a batch a transaction; yield after each."""
    before = timezone.now() - age
    while WebhookEvent.objects.delete_older(workspace_id, before=before, limit=BATCH):
        yield
