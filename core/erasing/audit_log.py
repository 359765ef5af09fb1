"""Erasure of addresses from the audit log of a workspace (docs/decisions/0353)."""

from typing import Any

from core.erasing.steps import ERASED, ErasureScope, StepResult
from core.lib.ids import to_uuid
from core.lib.sql import run
from core.workspaces.models import AuditEntry

ACTION = AuditEntry.Action
# Actions on people who are not members: the log of members has other reasons to stay.
ABOUT_OTHERS = (
    ACTION.SUPPRESSION_ADDED, ACTION.SUPPRESSION_REMOVED, ACTION.SENDER_BLOCKED, ACTION.SENDER_UNBLOCKED,
    ACTION.INBOUND_FORWARDED, ACTION.FORWARD_CONFIRMED, ACTION.FORWARD_REFUSED,
)  # fmt: skip
ERASE_OBJECTS = """
UPDATE workspaces_auditentry e SET about = %(erased)s, about_code = NULL
  FROM unnest(%(addresses)s::text[], %(patterns)s::text[]) AS a (address, pattern)
 WHERE e.workspace_id = %(workspace)s AND e.act = ANY(%(actions)s) AND lower(e.about) ~ a.pattern RETURNING a.address
"""
ENTRIES = 500
FIND = """
SELECT id FROM workspaces_auditentry e
 WHERE e.workspace_id = %(workspace)s AND id > %(after)s
   AND ((e.act = ANY(%(actions)s) AND lower(e.about) ~ %(pattern)s)
    OR (e.actor_kind = 'person' AND lower(e.actor) = ANY(%(addresses)s)))
 ORDER BY id LIMIT %(limit)s
"""
# Searches of the staff, in the log of the installation.
ERASE_SEARCHES = """
UPDATE workspaces_auditentry SET about = %(erased)s
 WHERE act = 'emails_searched' AND position(lower(%(address)s) in lower(about)) > 0
"""


def find_entries(scope: ErasureScope, *, after: int) -> list[AuditEntry]:
    """Return a page of the entries about the addresses, and of what members with one of them did, by their ids."""
    ids = [id_ for (id_,) in run(FIND, {**_values(scope), "after": after, "limit": ENTRIES})]
    return list(AuditEntry.objects.filter(id__in=ids).order_by("id"))


def erase_from_audit(scope: ErasureScope, _place: Any) -> StepResult:
    """Blank the addresses in entries about suppressions, blocked senders and forwards."""
    result = StepResult()
    for (address,) in run(ERASE_OBJECTS, {**_values(scope), "erased": ERASED}):
        result.add([address], auditEntries=1)
    return result


def erase_searches(address: str) -> None:
    """Blank an address in the searches of the staff."""
    run(ERASE_SEARCHES, {"erased": ERASED, "address": address})


def _values(scope: ErasureScope) -> dict[str, Any]:
    return {
        "addresses": list(scope.addresses),
        "pattern": scope.pattern,
        "patterns": scope.patterns,
        "workspace": to_uuid(scope.workspace_id, prefix="ws_"),
        "actions": [action.value for action in ABOUT_OTHERS],
    }
