"""Limits of API keys for the stored emails and batches that a key changes (docs/decisions/0104)."""

from typing import Any

from core.api.errors import NotFound
from core.workspaces.key_limits import KeyLimits, LimitedQuerySet
from emails.models import Email, EmailBatch


def refuse_email(limits: KeyLimits, email: Email) -> None:
    """Raise NotFound if a stored email is outside of the limits of the key."""
    _refuse_outside(Email.objects.filter(id=email.id), limits, workspace_id=email.workspace_id)


def refuse_batch(limits: KeyLimits, batch: EmailBatch) -> None:
    """Raise NotFound if a batch, or one of its emails, is outside of the limits of the key."""
    _refuse_outside(EmailBatch.objects.filter(id=batch.id), limits, workspace_id=batch.workspace_id)


def _refuse_outside(rows: LimitedQuerySet[Any], limits: KeyLimits, *, workspace_id: str) -> None:
    is_limited = limits.is_test or limits.restricts_emails
    if is_limited and not rows.within(limits, workspace_id=workspace_id).exists():
        raise NotFound
