"""Steps of an erasure, in their order (docs/decisions/0353)."""

from typing import Any

from django.db import transaction

from console.privacy.records import RECORDS
from core.erasing.steps import ErasureScope, ErasureStep, StepResult
from core.lib.sql import run

STEPS: tuple[ErasureStep, ...] = tuple(records.erase for records in RECORDS)
# A transaction of an erasure or export at a time: two erasures would repeat each other's work, and an export would
# write what it read before an erasure.
LOCK = "SELECT pg_advisory_xact_lock(hashtext('erasures'))"


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
    run(LOCK)
    result = step(scope, place)
    for address, counts in result.counts.items():
        total.add([address], **counts)
    total.waiting += result.waiting
    return result.place
