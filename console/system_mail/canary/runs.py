"""The runs of the canary: each is a row whose stages are found afterwards, so that no sending is slower for it.

The periodic task may be lost or run twice at once. Times are the database's.
"""

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now
from django.utils.translation import override

from console.system_mail.canary.notices import notify_staff_of_late, notify_staff_of_recovery
from console.system_mail.canary.ping import ping
from console.system_mail.canary.signatures import PASS, TEMPERROR, check_signature
from console.system_mail.canary.status import is_paused
from console.system_mail.models import CanaryRun, SystemMail, SystemMailKind, SystemMailState, canary_interval
from console.system_mail.services import queue_system_mail
from core.lib.sql import run as run_sql
from emails.sending.transport_status import drained_transports
from interfaces.inbound.canary import canary_subject

LOCK = "SELECT pg_advisory_xact_lock(hashtext('canary'))"
TEXT = "This email shows that {name} sends and receives. Nothing has to be done."


def check_canaries() -> None:
    """Verify the canaries that came back, find late ones, and start the next one if it is due."""
    if not settings.CANARY_MINUTES:
        return
    if is_paused():
        delete_unfinished()
    else:
        verify_returned()
        ping_after_success()
        end_late()
        start_due()


def verify_returned() -> None:
    """Check the signatures of canaries that came back; without an answer of the DNS, again until they are late."""
    for run in CanaryRun.objects.exclude(source=None).order_by("started_at"):
        result = check_signature(bytes(run.source or b""))
        if result != TEMPERROR or run.late_at:
            _record_signature(run, result)


@transaction.atomic
def _record_signature(run: CanaryRun, result: str) -> None:
    is_valid = result == PASS
    row = CanaryRun.objects.filter(id=run.id).exclude(source=None)
    is_recorded = row.update(signature=result, source=None, verified_at=Now() if is_valid else None)
    if is_recorded and is_valid and not run.late_at and run.follows_late_one():
        notify_staff_of_recovery(run)


def ping_after_success() -> None:
    """Call CANARY_PING_URL if a canary was verified in time since the last call; a failed call is repeated."""
    due = CanaryRun.objects.filter(late_at=None, pinged_at=None, verified_at__gt=Now() - canary_interval())
    ids = list(due.values_list("id", flat=True)) if settings.CANARY_PING_URL else []
    if ids and ping():
        CanaryRun.objects.filter(id__in=ids).update(pinged_at=Now())


def delete_unfinished() -> None:
    """Delete the runs that have no result: those of a copied database, or of the time before RECIPIENTS changed."""
    SystemMail.objects.filter(
        canary_run__verified_at=None, canary_run__late_at=None, kind=SystemMailKind.CANARY
    ).delete()


@transaction.atomic
def end_late() -> None:
    """End the attempts of runs that are late, and notify the staff of the first one of each transport."""
    run_sql(LOCK)
    for run in CanaryRun.objects.unverified_in_time().select_related("mail").order_by("started_at"):
        is_first = not run.follows_late_one()
        CanaryRun.objects.filter(id=run.id).update(late_at=Now(), source=None)
        waiting = SystemMail.objects.filter(id=run.mail_id, state=SystemMailState.WAITING)
        waiting.update(state=SystemMailState.FAILED, finished_at=Now())
        if is_first:
            notify_staff_of_late(run)


@transaction.atomic
def start_due() -> None:
    """Send a canary by the next transport unless one was sent within an interval; tasks at once send one."""
    run_sql(LOCK)
    if CanaryRun.objects.of_last_intervals(1).exists():
        return
    if transport := _next_transport():
        _start(transport)


def _start(transport: str) -> None:
    run = CanaryRun(transport=transport)
    with override("en"):
        run.mail = queue_system_mail(
            to=settings.CANARY_ADDRESS,
            kind=SystemMailKind.CANARY,
            subject=canary_subject(run.id),
            text=TEXT.format(name=settings.SYSTEM_NAME),
            transport=transport,
        )
    run.save(force_insert=True)


def _next_transport() -> str | None:
    """Return the transport after that of the last run, in the order of the settings; None if all are drained."""
    names, drained = list(settings.TRANSPORTS.transports), drained_transports()
    last = CanaryRun.objects.order_by("-started_at").values_list("transport", flat=True).first()
    first = names.index(last) + 1 if last in names else 0
    return next((name for name in names[first:] + names[:first] if name not in drained), None)
