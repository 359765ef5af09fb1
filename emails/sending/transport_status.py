"""The status of transports for the staff: from the database and the reports of processes (docs/decisions/0216)."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, time, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.dispatch import Signal

from core.delivery.bounces.replies import DeliveryOutcome
from core.delivery.transports.router import TransportChange, TransportReport, TransportState
from core.delivery.transports.transports_file import DEFAULT, TransportSpec
from core.lib.sql import run
from core.lib.worker.reports import read_reports, send_report
from core.lib.worker.stages import Stage
from core.workspaces.audit import AuditAction, record_action
from emails.models import TransportUse
from emails.sending import delivery_health

# Sent with the arguments `name`, `is_paused` and `error`, at most once an hour for each transport.
transport_changed = Signal()
# Sent with the arguments `name` (of the transport), `listed_by` and `reply`, once a day for each block list.
address_listed = Signal()

PREFIX = "postrider:transports:"
NOTICE_EVERY = timedelta(hours=1)
REFUND = """
UPDATE emails_transport SET used = greatest(used - %(count)s, 0)
 WHERE name = %(name)s AND used_on = (now() AT TIME ZONE 'UTC')::date
"""
IN_FLIGHT = f"""
SELECT coalesce(nullif(handed_to, ''), 'default'), count(*) FROM emails_pending
 WHERE stage = {Stage.LEASED} AND due_at > now() GROUP BY 1
"""  # noqa: S608 - constants
NOTE_LISTING = """
UPDATE emails_transport
   SET listings = coalesce(listings, '{}') || jsonb_build_object(%(listed_by)s::text, now())
 WHERE name = %(name)s
   AND coalesce((listings ->> %(listed_by)s)::timestamptz, '-infinity') < now() - interval '1 day'
RETURNING name
"""
RECENT_LISTINGS = """
SELECT name, key FROM emails_transport, jsonb_each_text(coalesce(listings, '{}'))
 WHERE value::timestamptz > now() - interval '1 day' ORDER BY name, key
"""
# The state of a transport is the first of these that a process reports.
SEVERITY = (TransportState.PAUSED, TransportState.PROBING, TransportState.OPEN)


@dataclass(frozen=True)
class TransportStatus:
    """A transport of the settings.

    since: None if no process reports.
    last_error: of a process, empty without one.
    """

    spec: TransportSpec
    state: str
    since: datetime | None
    last_error: str
    in_flight: int
    sent_today: int

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def kind(self) -> str:
        return self.spec.kind

    @property
    def routes(self) -> list[str]:
        return [route.name for route in settings.TRANSPORTS.routes.values() if self.name in route.use]

    @property
    def per_day(self) -> int | None:
        return self.spec.per_day


def read_statuses() -> list[TransportStatus]:
    """Return the status of each transport, in the order of the file."""
    reports, in_flight, sent = _read_reports(), dict(run(IN_FLIGHT)), delivery_health.sent_today()
    drained = dict(TransportUse.objects.exclude(drained_at=None).values_list("name", "drained_at"))
    statuses = []
    for name, spec in settings.TRANSPORTS.transports.items():
        report = _worst(report for report in reports if report.name == name)
        state, since = report.state, datetime.fromisoformat(report.since) if report.since else None
        if name in drained:
            state, since = TransportState.DRAINING.value, drained[name]
        statuses.append(TransportStatus(spec, state, since, report.error, in_flight.get(name, 0), sent.get(name, 0)))
    return statuses


def send_reports(reports: Sequence[TransportReport]) -> None:
    """Publish the states of this process, for display only."""
    send_report(settings.REDIS_URL, json.dumps([asdict(report) for report in reports]), prefix=PREFIX)


@transaction.atomic
def drain_transport(name: str) -> None:
    """Let no process begin a delivery by a transport; those in progress finish. Draining again changes nothing."""
    _create_row(name)
    if TransportUse.objects.filter(name=name, drained_at=None).update(drained_at=Now()):
        record_action(None, AuditAction.TRANSPORT_DRAINED, about=name)


@transaction.atomic
def resume_transport(name: str) -> None:
    if TransportUse.objects.exclude(drained_at=None).filter(name=name).update(drained_at=None):
        record_action(None, AuditAction.TRANSPORT_RESUMED, about=name)


def drained_transports() -> set[str]:
    return set(TransportUse.objects.exclude(drained_at=None).values_list("name", flat=True))


@transaction.atomic
def reserve(name: str, *, count: int, limit: int) -> tuple[int, float]:
    """Count messages towards the daily limit; return how many it allows, and the seconds until it ends."""
    _create_row(name)
    row = TransportUse.objects.select_for_update().annotate(clock=Now()).get(name=name)
    now: datetime = row.clock.astimezone(UTC)
    used = row.used if row.used_on == now.date() else 0
    granted = min(count, max(limit - used, 0))
    TransportUse.objects.filter(name=name).update(used_on=now.date(), used=used + granted)
    midnight = datetime.combine(now.date(), time.min, UTC) + timedelta(days=1)
    return granted, (midnight - now).total_seconds()


def refund(name: str, *, count: int) -> None:
    """Return messages that were counted today, and that the transport has certainly not taken."""
    run(REFUND, {"name": name, "count": count})


def send_changes(changes: Iterable[TransportChange]) -> None:
    """Tell the receivers of transport_changed, of each transport once an hour."""
    for change in changes:
        _create_row(change.name)
        column = "paused_notice_at" if change.is_paused else "resumed_notice_at"
        is_due = Q(**{column: None}) | Q(**{f"{column}__lt": Now() - NOTICE_EVERY})
        with transaction.atomic():
            if TransportUse.objects.filter(is_due, name=change.name).update(**{column: Now()}):
                transport_changed.send(TransportUse, name=change.name, is_paused=change.is_paused, error=change.error)


def send_listings(outcomes: Iterable[DeliveryOutcome]) -> None:
    """Tell the receivers of address_listed which block lists have an address of a transport."""
    replies = {(one.transport or DEFAULT, one.listed_by): one.reply for one in outcomes if one.listed_by}
    for (name, listed_by), reply in replies.items():
        _create_row(name)
        with transaction.atomic():
            if run(NOTE_LISTING, {"name": name, "listed_by": listed_by}):
                text = f"{reply.code} {reply.text}"
                address_listed.send(TransportUse, name=name, listed_by=listed_by, reply=text)


def recent_listings() -> list[tuple[str, str]]:
    """Return the transports, and the block lists because of which receivers refused their address, of the last day."""
    return [(name, listed_by) for name, listed_by in run(RECENT_LISTINGS)]


def _create_row(name: str) -> None:
    """Create the row of a transport unless it exists."""
    TransportUse.objects.bulk_create([TransportUse(name=name)], ignore_conflicts=True)


def _read_reports() -> list[TransportReport]:
    texts = read_reports(settings.REDIS_URL, prefix=PREFIX)
    return [TransportReport(**report) for text in texts for report in json.loads(text)]


def _worst(reports: Iterable[TransportReport]) -> TransportReport:
    """Return the report of the process in the worst state, with the last error of any."""
    known = sorted(reports, key=lambda report: SEVERITY.index(TransportState(report.state)))
    if not known:
        return TransportReport("", TransportState.OPEN, "")
    errors = [report.error for report in known if report.error]
    return replace(known[0], error=errors[0] if errors else "")
