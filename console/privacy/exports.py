"""Export services: request the export of a person, and make those that are due (docs/decisions/0373).

An export is made in steps, as an erasure is: each reads a page of records and writes it as parts of the files, in one
transaction, which also stores its place. An interrupted export continues.
"""

from collections.abc import Iterator
from datetime import timedelta

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Coalesce, Now

from console.privacy.exporting.erasure import expire_exports
from console.privacy.exporting.parts import PartWriter
from console.privacy.models import SubjectExport
from console.privacy.records import RECORDS
from console.privacy.steps import LOCK
from core.erasing.steps import ErasureScope
from core.lib.sql import run
from core.lib.worker.failpoints import failpoint
from core.workspaces.audit import AuditAction, record_action
from core.workspaces.errors import PlanLimitReached
from core.workspaces.models import Workspace

LIFETIME = timedelta(days=7)
# Exports of a workspace that are kept or being made.
MAX_KEPT = 100
WAIT_AFTER_ERROR = timedelta(seconds=30)


@transaction.atomic
def request_export(workspace: Workspace, *, email: str) -> SubjectExport:
    """Request the export of a person; return the same one while it is being made. Raises PlanLimitReached.

    email: an addr-spec.
    """
    workspace.lock()
    address = email.lower()
    kept = SubjectExport.objects.filter(~Q(email=""), workspace=workspace)
    if same := kept.filter(email=address, completed_at=None).first():
        return same
    if kept.count() >= MAX_KEPT:
        detail = f"At most {MAX_KEPT} exports are kept at a time. Each is deleted seven days after it was made."
        raise PlanLimitReached(detail, resource="subject_exports", limit=MAX_KEPT)
    export = SubjectExport(workspace=workspace, email=address)
    export.save(force_insert=True)
    # Only the id: the audit log outlives the file.
    record_action(workspace, AuditAction.EXPORT_REQUESTED, about=export.id)
    export.refresh_from_db()
    return export


def open_export(export: SubjectExport) -> bool:
    """Record that a file is downloaded; return False if there is none to download."""
    is_open = SubjectExport.objects.filter(id=export.id, completed_at__isnull=False, expires_at__gt=Now()).exists()
    if is_open:
        record_action(export.workspace, AuditAction.EXPORT_DOWNLOADED, about=export.id)
    return is_open


def make_exports() -> Iterator[None]:
    """Make due exports step by step, and delete expired ones; yield after each transaction."""
    while _make_step():
        failpoint("privacy.after_export_step")
        yield
    while _expire_step():
        yield


@transaction.atomic
def _expire_step() -> bool:
    run(LOCK)
    return expire_exports()


def _make_step() -> bool:
    """Do one step of the export that has waited longest; return False if none is due."""
    try:
        with transaction.atomic():
            run(LOCK)
            export = _next_export()
            if export:
                _do_step(export)
                failpoint("privacy.before_export_commit")
    except Exception:
        # Others must not wait for it.
        _postpone()
        raise
    return export is not None


def _next_export() -> SubjectExport | None:
    due = SubjectExport.objects.filter(~Q(email=""), completed_at=None, due_at__lte=Now())
    return due.order_by("due_at", "id").first()


def _do_step(export: SubjectExport) -> None:
    writer = PartWriter(export)
    place = RECORDS[export.step].export(ErasureScope(export.workspace_id, (export.email,)), export.place, writer)
    writer.finish()
    export.place = place
    export.step += place is None
    export.save(update_fields=["counts", "size", "left_out", "step", "place"])
    rows = SubjectExport.objects.filter(id=export.id)
    # Behind others that are due: they take turns.
    rows.update(due_at=Now())
    if export.step == len(RECORDS):
        rows.update(completed_at=Now(), expires_at=Coalesce("expires_at", Now() + LIFETIME))


def _postpone() -> None:
    with transaction.atomic():
        if export := _next_export():
            SubjectExport.objects.filter(id=export.id).update(due_at=Now() + WAIT_AFTER_ERROR)
