"""Records of people: how each kind is erased and exported, in the order in which both take them.

An erasure and an export of a person walk the same list, so that neither misses a kind that the other has
(docs/decisions/0353 and 0373).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from console.privacy.exporting.emails import export_keys, export_mentions, export_sent, export_workspace_events
from console.privacy.exporting.erasure import erase_exports
from console.privacy.exporting.others import (
    export_accounts,
    export_audit,
    export_caught,
    export_received,
    export_reports,
    export_requests,
    export_settings,
    export_suppressions,
)
from console.privacy.exporting.parts import PartWriter
from core.erasing.audit_log import erase_from_audit
from core.erasing.steps import ErasureScope, ErasureStep, StepResult
from emails.upkeep.erasure import erase_from_keys, erase_mentions, erase_sent, erase_workspace_events
from interfaces.inbound.inbox.retention import erase_mail
from interfaces.inbound.queue import erase_reports
from receiving.deletion import erase_received

# Writes a page of records, and returns the place of the next one as JSON; None after the last.
ExportStep = Callable[[ErasureScope, Any, PartWriter], Any]


@dataclass(frozen=True)
class PersonalRecords:
    """Some kinds of records of people. kinds: their names in receipts and exports (console.privacy.receipts)."""

    kinds: tuple[str, ...]
    erase: ErasureStep
    export: ExportStep


def keep(_scope: ErasureScope, _place: Any) -> StepResult:
    """Erase nothing: the kind stays, for a reason that receipts have."""
    return StepResult()


def erase_at_the_end(_scope: ErasureScope, _place: Any) -> StepResult:
    """Erase nothing yet: until the end of an erasure, suppressions keep further email from the person."""
    return StepResult()


EMAIL_KINDS = ("emails", "events", "webhookDeliveries", "apiRequests")
# Reports belong to recipients, which go with their emails. Exports come behind the records that they have copies of.
RECORDS: tuple[PersonalRecords, ...] = (
    PersonalRecords(("reports",), erase_reports, export_reports),
    PersonalRecords(EMAIL_KINDS, erase_sent, export_sent),
    PersonalRecords(EMAIL_KINDS, erase_mentions, export_mentions),
    PersonalRecords(("receivedEmails", "events", "webhookDeliveries"), erase_received, export_received),
    PersonalRecords(("events", "webhookDeliveries"), erase_workspace_events, export_workspace_events),
    PersonalRecords(("idempotencyKeys",), erase_from_keys, export_keys),
    PersonalRecords(("caughtMessages",), erase_mail, export_caught),
    PersonalRecords(("auditEntries",), erase_from_audit, export_audit),
    PersonalRecords(("subjectExports", "privacyRequests"), erase_exports, export_requests),
    PersonalRecords(("suppressions",), erase_at_the_end, export_suppressions),
    PersonalRecords(("accounts",), keep, export_accounts),
    PersonalRecords(("configuration",), keep, export_settings),
)
