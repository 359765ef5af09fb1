"""Emails sent, claimed and finished as a client and a worker would, and the rows that result."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from core.counters import acceptances, counters
from core.counters.latency import PREFIX
from core.counters.models import CounterDelta, HourlyCounter
from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply, parked
from core.lib.email_addresses import parse_address
from core.lib.worker.lease_queue import Cursor
from core.lib.worker.stages import Stage
from core.workspaces.api import authentication
from core.workspaces.key_limits import NO_LIMITS
from core.workspaces.models import Usage, Workspace
from emails.accept.services import Draft, send_email
from emails.models import Acceptance, Attachment, Content, Email, QueueEntry, Recipient
from emails.sending.outcomes import SendResult, record_results
from emails.sending.queue import EmailClaim, WorkspaceShares
from emails.sending.scheduling import promote_due
from events.kinds import EventKind
from events.models import Event
from tests.conftest import Api, mail

OK = DeliveryOutcome(DeliveryStatus.DELIVERED, Reply(250, "2.0.0 ok"))
SENT = DeliveryOutcome(DeliveryStatus.SENT, Reply(250, "2.0.0 ok"))
LATER = DeliveryOutcome(DeliveryStatus.DEFERRED, Reply(451, "4.7.1 try again"), "temporary")
BOUNCED = DeliveryOutcome(DeliveryStatus.BOUNCED, Reply(550, "5.1.1 no such user"), "rejected")
UNKNOWN_USER = DeliveryOutcome(
    DeliveryStatus.BOUNCED, Reply(550, "5.1.1 no such user"), "unknown_user", is_recipient_fault=True
)
PARKED = parked(FailureReason.DESTINATION_FULL, "All connections are in use.")
FAILED = DeliveryOutcome(DeliveryStatus.FAILED, Reply(0, "It took too long."), "expired")
# Counters that do not belong to a workspace.
COUNTED_APART = rf"^({PREFIX}|{acceptances.PREFIX[:-1]})\."
LONG_AGO = "2020-01-01T00:00:00Z"
WRITTEN_BY_ACCEPTING = (Email, Recipient, QueueEntry, Acceptance, Content, Attachment, CounterDelta)


def send(api: Api, **fields: Any) -> str:
    """Send an email through the API and return its id."""
    response = api.post("/emails/send", mail(**fields))
    assert response.status_code == 202, response.content
    return str(response.json()["id"])


def accept(workspace: Workspace, *to: str, count: int = 1, **fields: Any) -> None:
    """Accept the same email, without a request."""
    draft = Draft(
        sender=parse_address(f"x@{workspace.name}.example"),
        to=tuple(parse_address(address) for address in to or ("ada@example.com",)),
        subject="s",
        html="<p>",
        **fields,
    )
    for _ in range(count):
        send_email(workspace, draft=draft, key=None, limits=NO_LIMITS)


def claim_entries(
    limit: int = 1000,
    *,
    cap: int = 1000,
    in_flight: Mapping[str, int] | None = None,
    last_in_flight: Mapping[str, int] | None = None,
) -> list[EmailClaim]:
    """Lease up to limit ready entries, like a worker that begins its round robin."""
    return Cursor[EmailClaim]().claim(limit, WorkspaceShares(cap, in_flight or {}, last_in_flight or {}))


def deliver(*outcomes: DeliveryOutcome) -> None:
    """Claim a ready entry for each outcome and record it."""
    claims = claim_entries(len(outcomes))
    record_results([SendResult(claim, outcome) for claim, outcome in zip(claims, outcomes, strict=True)])


def deliver_all(outcome: DeliveryOutcome = OK) -> None:
    """Claim all ready entries and record the same outcome for each."""
    record_results([SendResult(claim, outcome) for claim in claim_entries()])


def make_due(**emails: Any) -> None:
    """Move scheduled emails into the past; the entry of the first recipient has the time."""
    leads = QueueEntry.objects.filter(recipient__position=0, stage=Stage.SCHEDULED)
    leads.filter(**{f"recipient__email__{name}": value for name, value in emails.items()}).update(due_at=LONG_AGO)


def let_time_pass() -> None:
    """Let waits and leases expire."""
    QueueEntry.objects.update(due_at=datetime.now(UTC) - timedelta(seconds=1))
    promote_due()


def make_ready() -> None:
    """End all waits, schedules and leases."""
    QueueEntry.objects.update(stage=Stage.READY)


def event_kinds(email_id: Any = None) -> list[str]:
    """Return the timeline of an email, by default of the only one."""
    email = Email.objects.get(**{"id": email_id} if email_id else {})
    return list(email.events.values_list("kind", flat=True))


def change_workspace(workspace: Workspace, **fields: Any) -> None:
    """Change the row of a workspace, and forget what requests know of it."""
    Workspace.objects.filter(id=workspace.id).update(**fields)
    authentication.cache.clear()


def fold() -> None:
    """Fold all changes of counters."""
    while counters.fold():
        pass


def counter_values() -> dict[str, int]:
    """Fold all changes and return the counters of workspaces that are not zero."""
    fold()
    counted = HourlyCounter.objects.exclude(workspace_id=counters.SERVICE).exclude(key__regex=COUNTED_APART)
    return {key: count for key, count in counted.values_list("key", "count") if count}


def nothing_was_written() -> bool:
    """Return whether no request was accepted and no quota used; addresses may have been suppressed."""
    is_used = Usage.objects.filter(used__gt=0).exists()
    has_events = Event.objects.exclude(kind=EventKind.SUPPRESSION_ADDED).exists()
    return not is_used and not has_events and not any(model.objects.exists() for model in WRITTEN_BY_ACCEPTING)
