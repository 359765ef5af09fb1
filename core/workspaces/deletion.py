"""Deletion of workspaces: marked first, restorable during the grace period (docs/decisions/0119).

console.provisioning.erasure deletes the data afterwards.
"""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import DateTimeField, Func, Q, QuerySet
from django.db.models.functions import Now
from django.dispatch import Signal

from core.lib.coded_texts import CodedText
from core.lib.datetimes import format_datetime
from core.workspaces.audit import AuditAction, record_action
from core.workspaces.errors import WorkspaceDeleted
from core.workspaces.models import Workspace

# Sent in the transaction of a deletion or restoration, with the workspace; console.system_mail.workspace_emails
# receives it.
deletion_changed = Signal()


class ClockTime(Func):
    """The current time, also in a statement that waited for a lock, where Now() is the start of the transaction."""

    function = "clock_timestamp"
    output_field: Any = DateTimeField()


def existing_workspaces() -> QuerySet[Workspace]:
    """Return the workspaces except for those whose grace period has ended."""
    return Workspace.objects.filter(Q(deletes_at=None) | Q(deletes_at__gt=ClockTime()))


def ended_workspaces() -> QuerySet[Workspace]:
    """Return the deleted workspaces whose grace period has ended."""
    return Workspace.objects.filter(deletes_at__lte=ClockTime())


@transaction.atomic
def delete_workspace(workspace: Workspace) -> None:
    """Mark a workspace as deleted: its keys stop working, and nothing is sent. Deleting again changes nothing."""
    deletes_at = Now() + timedelta(days=settings.WORKSPACE_DELETION_DAYS)
    if Workspace.objects.filter(id=workspace.id, deletes_at=None).update(deletes_at=deletes_at):
        _announce(workspace, AuditAction.WORKSPACE_DELETED)


@transaction.atomic
def restore_workspace(workspace: Workspace) -> None:
    """Restore a deleted workspace; queued emails are sent. Does nothing once the grace period has ended."""
    if existing_workspaces().filter(id=workspace.id, deletes_at__isnull=False).update(deletes_at=None):
        _announce(workspace, AuditAction.WORKSPACE_RESTORED)


def _announce(workspace: Workspace, action: AuditAction) -> None:
    record_action(workspace, action, about=workspace.name)
    deletion_changed.send(Workspace, workspace=Workspace.objects.get(id=workspace.id))


def refuse_deleted(workspace: Workspace) -> None:
    """Raise WorkspaceDeleted for a deleted workspace."""
    if workspace.deletes_at:
        until = format_datetime(workspace.deletes_at)
        raise WorkspaceDeleted(CodedText("workspaces.deleted", until=until), deletesAt=until)
