"""Sweeps of what accounts leave behind; they may be lost or doubled."""

from celery import shared_task

from workspaces.audit import expired_entries
from workspaces.members import expired_invitations
from workspaces.retention import rested


@shared_task(name="workspaces.tasks.expire", ignore_result=True)
def expire() -> None:
    """Delete old entries of the audit log, and invitations that ended."""
    rested(expired_entries())
    expired_invitations().delete()
