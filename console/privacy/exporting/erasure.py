"""Erasure from exports: those of an erased person are deleted, and others that contain a part of it are made again."""

from collections.abc import Iterator
from typing import Any

from django.db.models import Q
from django.db.models.functions import Now

from console.privacy.models import SubjectExport
from core.erasing.steps import ErasureScope, StepResult
from core.lib.ids import to_uuid
from core.lib.sql import run

PARTS = 1_000
# Exports with an email that exists no more. Making one again that lost an email to retention does no harm.
OUTDATED = """
SELECT DISTINCT part.export_id FROM privacy_subjectexportpart part
  JOIN privacy_subjectexport export ON export.id = part.export_id AND export.edition = part.edition
 CROSS JOIN unnest(part.about) AS email_id
 WHERE export.workspace_id = %(workspace)s AND export.email <> ''
   AND NOT EXISTS (SELECT FROM emails_email WHERE id = email_id)
   AND NOT EXISTS (SELECT FROM receiving_receivedemail WHERE id = email_id)
"""
MAKE_AGAIN = """
UPDATE privacy_subjectexport SET edition = edition + 1, step = 0, place = NULL, counts = '{}', size = 0, left_out = 0,
       completed_at = NULL, due_at = now()
 WHERE id = ANY(%s)
"""
# Parts of exports that have expired, or are made again.
DELETE_PARTS = """
DELETE FROM privacy_subjectexportpart WHERE number IN (
    SELECT part.number FROM privacy_subjectexport export
      JOIN privacy_subjectexportpart part ON part.export_id = export.id
     WHERE export.workspace_id = %(workspace)s AND (export.email = '' OR part.edition < export.edition)
     LIMIT %(limit)s)
RETURNING number
"""

DELETE_EXPIRED = """
DELETE FROM privacy_subjectexportpart WHERE number IN (
    SELECT number FROM privacy_subjectexportpart WHERE export_id = %s LIMIT %s)
RETURNING number
"""


def erase_exports(scope: ErasureScope, place: Any) -> StepResult:
    """Delete the exports of the people, and let outdated ones be made again.

    An export that is being made continues in another transaction, which waits for this one: it cannot write what was
    read before the erasure (console.privacy.steps.LOCK).
    """
    result = StepResult()
    if place is None:
        expired = SubjectExport.objects.filter(workspace=scope.workspace_id, email__in=scope.addresses)
        for address in expired.values_list("email", flat=True):
            result.add([address], subjectExports=1)
        _expire(expired)
        run(MAKE_AGAIN, [[id_ for (id_,) in run(OUTDATED, _workspace(scope.workspace_id))]])
    if delete_parts(scope.workspace_id) == PARTS:
        result.place = []
    return result


def expire_exports() -> bool:
    """Delete a batch of the parts of an export that is past its time, then its address; return False without one."""
    due = SubjectExport.objects.filter(~Q(email=""), expires_at__lte=Now())
    export = due.order_by("expires_at").first()
    if export is None:
        return False
    if len(run(DELETE_EXPIRED, [to_uuid(export.id, prefix="sxp_"), PARTS])) < PARTS:
        _expire(SubjectExport.objects.filter(id=export.id))
    return True


def delete_all_exports(workspace_id: str) -> Iterator[None]:
    """Delete the parts of all exports of a workspace; yield after each batch."""
    _expire(SubjectExport.objects.filter(workspace=workspace_id))
    while delete_parts(workspace_id):
        yield


def delete_parts(workspace_id: str) -> int:
    """Delete a batch of the parts that no export of the workspace needs; return their number."""
    return len(run(DELETE_PARTS, {**_workspace(workspace_id), "limit": PARTS}))


def _expire(exports: Any) -> None:
    exports.update(email="", place=None, expires_at=Now())


def _workspace(workspace_id: str) -> dict[str, Any]:
    return {"workspace": to_uuid(workspace_id, prefix="ws_")}
