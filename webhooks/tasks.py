"""Celery tasks of webhooks. They take no arguments and may be lost or run twice."""

from collections.abc import Iterator
from datetime import timedelta

from celery import shared_task
from django.utils import timezone

from core.workspaces.retention import sweep
from webhooks.models import WebhookEvent
from webhooks.sending.webhooks_work import webhooks_processor

EXPIRE_BATCH = 1000


@shared_task(name="webhooks.tasks.drain", ignore_result=True)
def process_queue() -> None:
    """Post every due delivery."""
    webhooks_processor().run_notified()


@shared_task(name="webhooks.tasks.expire", ignore_result=True)
def expire() -> None:
    """Delete events older than the retention of each workspace's plan."""
    sweep("webhooks", _delete_expired)


def _delete_expired(workspace_id: str, age: timedelta) -> Iterator[None]:
    """Delete a workspace's expired events with their deliveries, one transaction per batch; yield after each."""
    before = timezone.now() - age
    while WebhookEvent.objects.delete_older(workspace_id, before=before, limit=EXPIRE_BATCH):
        yield
