"""Periodic task of the management API: it may be lost or run twice."""

from celery import shared_task

from console.provisioning.erasure import erase_workspace
from console.provisioning.idempotency import delete_expired_responses
from console.provisioning.leases import delete_expired_leases
from core.workspaces.deletion import ended_workspaces
from core.workspaces.retention import sweep


@shared_task(name="provisioning.tasks.erase", ignore_result=True)
def erase() -> None:
    """Delete the data of deleted workspaces whose grace period has ended, and responses and leases that ended."""
    delete_expired_responses()
    delete_expired_leases()
    sweep("deleted workspaces", erase_workspace, workspaces=ended_workspaces())
