"""Changes by the staff to the pace of a source at a receiver, each with an audit entry (docs/decisions/0363).

Workers follow within the time of a lease, ten seconds.
"""

from django.db import transaction
from django.db.models.functions import Now

from core.delivery.pacing.pace import Pace
from core.workspaces.audit import AuditAction, record_action
from emails.models import ReceiverPace

# Messages a minute that may be set.
LEAST_RATE, MOST_RATE = 1, 1_000_000


@transaction.atomic
def suspend_pair(pair: ReceiverPace) -> None:
    """Begin no delivery of this source to this receiver until it is released. Suspending again changes nothing."""
    if ReceiverPace.objects.filter(id=pair.id, stopped_at=None).update(stopped_at=Now()):
        record_action(None, AuditAction.RECEIVER_SUSPENDED, about=str(pair))


@transaction.atomic
def release_pair(pair: ReceiverPace) -> None:
    """End a suspension by the staff or by a reply, and forget the learnt rate. A pinned rate stays."""
    locked = ReceiverPace.objects.select_for_update().annotate(clock=Now()).filter(id=pair.id).first()
    if locked is None:
        return
    locked.pace = Pace.from_json(locked.pace).released(locked.clock.timestamp()).to_json()
    locked.stopped_at = None
    locked.save(update_fields=["pace", "stopped_at"])
    record_action(None, AuditAction.RECEIVER_RELEASED, about=str(pair))


@transaction.atomic
def pin_rate(pair: ReceiverPace, *, per_minute: int) -> None:
    """Let exactly so many messages a minute leave, in place of the learnt rate and of that of the table.

    per_minute: from LEAST_RATE to MOST_RATE.
    """
    if ReceiverPace.objects.filter(id=pair.id).update(pinned=per_minute):
        record_action(None, AuditAction.RECEIVER_PINNED, about=f"{pair}: {per_minute} a minute")


@transaction.atomic
def unpin_rate(pair: ReceiverPace) -> None:
    """Let the learnt rate apply again. Without a pinned one, nothing changes."""
    if ReceiverPace.objects.filter(id=pair.id, pinned__isnull=False).update(pinned=None):
        record_action(None, AuditAction.RECEIVER_UNPINNED, about=str(pair))
