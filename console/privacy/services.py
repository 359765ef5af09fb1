"""Erasure services: request one, and process those that are due.

People of one workspace are erased together in passes of up to GROUP_SIZE, since a pass reads all emails. A pass is a
sequence of bounded steps, each in a transaction that also stores its counts and place: an interrupted pass continues.
See docs/decisions/0353.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta

from django.db import transaction
from django.db.models.functions import Now

from console.privacy.models import Erasure
from console.privacy.steps import LOCK, STEPS
from core.erasing.steps import ErasureScope, StepResult
from core.lib.sql import run
from core.lib.worker.failpoints import failpoint
from core.workspaces.audit import AuditAction, record_action
from core.workspaces.errors import PlanLimitReached
from core.workspaces.models import Workspace
from suppressions.erased import erase_suppressions

GROUP_SIZE = 100
MAX_PENDING = 10_000
# The wait for emails that are on their way, doubled after each pass.
FIRST_WAIT, LONGEST_WAIT = timedelta(seconds=30), timedelta(hours=1)


@transaction.atomic
def request_erasure(workspace: Workspace, *, email: str, keep_suppression: bool = True) -> Erasure:
    """Request the erasure of a person; return the same one while it is being processed. Raises PlanLimitReached.

    email: an addr-spec.
    """
    workspace.lock()
    address = email.lower()
    pending = Erasure.objects.filter(workspace=workspace, completed_at=None)
    if same := pending.filter(email=address, keep_suppression=keep_suppression).first():
        return same
    if pending.count() >= MAX_PENDING:
        detail = f"At most {MAX_PENDING:,} erasures are processed at a time. Try again later."
        raise PlanLimitReached(detail, resource="erasures", limit=MAX_PENDING)
    erasure = Erasure(workspace=workspace, email=address, keep_suppression=keep_suppression)
    erasure.save(force_insert=True)
    # Only the id: the audit log outlives the erased data.
    record_action(workspace, AuditAction.ERASURE_REQUESTED, about=erasure.id)
    erasure.refresh_from_db()
    return erasure


def process_erasures() -> Iterator[None]:
    """Process due erasures step by step; yield after each transaction."""
    while _process_step():
        failpoint("privacy.after_erasure_step")
        yield


def _process_step() -> bool:
    """Do one step for a group of erasures; return False if none is due."""
    try:
        with transaction.atomic():
            run(LOCK)
            group = _next_group()
            if group:
                _do_step(group)
                failpoint("privacy.before_erasure_commit")
    except Exception:
        # Others must not wait for it.
        _postpone()
        raise
    return bool(group)


def _next_group() -> list[Erasure]:
    """Return the erasures of the pass that was begun first, or of a new one."""
    due = Erasure.objects.filter(completed_at=None, due_at__lte=Now())
    first = due.order_by("due_at", "id").first()
    if first is None:
        return []
    if first.run:
        return list(Erasure.objects.filter(workspace=first.workspace_id, run=first.run).order_by("id"))
    group = list(due.filter(workspace=first.workspace_id, run=None).order_by("due_at", "id")[:GROUP_SIZE])
    for erasure in group:
        erasure.run, erasure.step, erasure.place, erasure.waiting = first.id, 0, None, 0
    return group


def _do_step(group: Sequence[Erasure]) -> None:
    number, place = group[0].step, group[0].place
    scope = ErasureScope(group[0].workspace_id, tuple(dict.fromkeys(erasure.email for erasure in group)))
    result = STEPS[number](scope, place)
    for erasure in group:
        _add(erasure, result)
    if result.place is None and number + 1 == len(STEPS):
        for erasure in group:
            _end_pass(erasure)
        return
    for erasure in group:
        erasure.step, erasure.place = (number, result.place) if result.place is not None else (number + 1, None)
    _save(group)


def _add(erasure: Erasure, result: StepResult) -> None:
    for kind, count in result.counts_of(erasure.email).items():
        erasure.counts[kind] = erasure.counts.get(kind, 0) + count
    erasure.waiting += result.waiting[erasure.email]


def _end_pass(erasure: Erasure) -> None:
    """Complete an erasure, or begin again later if emails are on their way."""
    erasure.passes += 1
    erasure.run, erasure.step, erasure.place = None, 0, None
    if erasure.waiting:
        _save([erasure])
        wait = min(FIRST_WAIT * 2 ** min(erasure.passes - 1, 10), LONGEST_WAIT)
        Erasure.objects.filter(id=erasure.id).update(due_at=Now() + wait)
        return
    # Last: until then, its suppressions keep further email from the person.
    erased = erase_suppressions(erasure.workspace, erasure.email, is_kept=erasure.keep_suppression)
    erasure.counts["suppressions"] = erasure.counts.get("suppressions", 0) + erased
    erasure.email = ""
    _save([erasure])
    Erasure.objects.filter(id=erasure.id).update(completed_at=Now())
    record_action(erasure.workspace, AuditAction.ADDRESS_ERASED, about=erasure.id)


def _save(group: Sequence[Erasure]) -> None:
    Erasure.objects.bulk_update(group, ["email", "counts", "waiting", "passes", "run", "step", "place"])


def _postpone() -> None:
    """Let the pass that failed wait."""
    with transaction.atomic():
        for erasure in _next_group():
            Erasure.objects.filter(id=erasure.id).update(due_at=Now() + FIRST_WAIT)
