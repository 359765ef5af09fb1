"""Cleanup tasks of accounts. A run may be lost or duplicated."""

from celery import shared_task

from core.workspaces.account_status import delete_abandoned_workspaces
from core.workspaces.audit import delete_expired_entries
from core.workspaces.identities import delete_expired_logout_tokens
from core.workspaces.members import expired_invitations
from core.workspaces.retention import run_batches


@shared_task(name="workspaces.tasks.expire", ignore_result=True)
def expire() -> None:
    """Delete old audit entries, expired invitations and logout tokens, and abandoned workspaces."""
    run_batches(delete_expired_entries())
    expired_invitations().delete()
    delete_expired_logout_tokens()
    delete_abandoned_workspaces()
