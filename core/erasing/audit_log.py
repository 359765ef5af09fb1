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
UPDATE workspaces_auditentry e SET about = %(erased)s, about_code = NULL FROM unnest(%(addresses)s::text[]) AS a
 WHERE e.workspace_id = %(workspace)s AND e.act = ANY(%(actions)s) AND position(a in lower(e.about)) > 0 RETURNING a
"""
# Searches of the staff, in the log of the installation.
ERASE_SEARCHES = """
UPDATE workspaces_auditentry SET about = %(erased)s
 WHERE act = 'emails_searched' AND position(lower(%(address)s) in lower(about)) > 0
"""


def erase_from_audit(scope: ErasureScope, _place: Any) -> StepResult:
    """Blank the addresses in entries about suppressions, blocked senders and forwards."""
    values = {
        "erased": ERASED,
        "addresses": list(scope.addresses),
        "workspace": to_uuid(scope.workspace_id, prefix="ws_"),
        "actions": [action.value for action in ABOUT_OTHERS],
    }
    result = StepResult()
    for (address,) in run(ERASE_OBJECTS, values):
        result.add([address], auditEntries=1)
    return result


def erase_searches(address: str) -> None:
    """Blank an address in the searches of the staff."""
    run(ERASE_SEARCHES, {"erased": ERASED, "address": address})
