"""The steps of an erasure, in their order (docs/decisions/0353)."""

from typing import Any

from django.db import transaction

from core.erasing.audit_log import erase_from_audit
from core.erasing.steps import ErasureScope, ErasureStep, StepResult
from emails.upkeep.erasure import erase_from_keys, erase_mentions, erase_sent, erase_workspace_events
from interfaces.inbound.inbox.retention import erase_mail
from interfaces.inbound.queue import erase_reports
from receiving.deletion import erase_received

# Reports belong to recipients, which go with their emails.
STEPS: tuple[ErasureStep, ...] = (
    erase_reports, erase_sent, erase_mentions, erase_received, erase_workspace_events, erase_from_keys, erase_mail,
    erase_from_audit,
)  # fmt: skip


def run_all(scope: ErasureScope) -> StepResult:
    """Run all steps to their end, with a transaction for each; return the sums of their results."""
    total = StepResult()
    for step in STEPS:
        result = StepResult(place=_run(step, scope, None, total))
        while result.place is not None:
            result = StepResult(place=_run(step, scope, result.place, total))
    return total


@transaction.atomic
def _run(step: ErasureStep, scope: ErasureScope, place: Any, total: StepResult) -> Any:
    result = step(scope, place)
    for address, counts in result.counts.items():
        total.add([address], **counts)
    total.waiting += result.waiting
    return result.place
