"""Notices about domains by their DMARC reports: failing authentication, forgeries, and copies of signed email.

A kind of notice is sent at most once a week for a domain: a conditional change of its row decides which of concurrent
checks sends it. See docs/decisions/0398.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from statistics import median
from typing import Any

from django.db import DatabaseError, transaction
from django.db.models import Max

from core.lib.coded_texts import CodedText
from core.lib.ids import to_uuid
from core.lib.sql import run
from domains.models import DmarcRow, Domain, DomainReport
from domains.reports.classification import FROM_OUR_SERVERS, SIGNED, Whose
from domains.reports.comparison import DayReport, DmarcComparison, read_comparison
from events.kinds import EventKind
from events.recording import NewEvent, record_events

DAY = timedelta(days=1)
# Reports of the last two days that they are about.
WINDOW_DAYS = 2
# Older mail is no news.
MAX_AGE = timedelta(days=4)
MIN_ALIGNED, MIN_MESSAGES = 0.98, 100
MIN_SPOOFED, SPOOFED_TIMES, USUAL_DAYS = 1_000, 5, 28
MIN_REPLAYED, REPLAY_TIMES = 1_000, 3
BATCH = 200
CLAIM = """
INSERT INTO domains_domainnotice (domain_id, kind, sent_at) VALUES (%(domain)s, %(kind)s, now())
ON CONFLICT (domain_id, kind) DO UPDATE SET sent_at = now()
 WHERE domains_domainnotice.sent_at <= now() - interval '7 days'
RETURNING id
"""

log = logging.getLogger("postrider.domains")

# Notifies the owners of a domain's workspace, in the caller's transaction.
Notify = Callable[..., Any]


@dataclass(frozen=True)
class Incident:
    """Something unusual that reports say. details: members of its event."""

    kind: EventKind
    summary: CodedText
    details: dict[str, Any]


def check_reported_domains(*, notify: Notify, today: date | None = None) -> None:
    """Check the domains that reports of the last days are about. today: in UTC, by default now."""
    on = today or datetime.now(UTC).date()
    for batch in _batches(since=on - MAX_AGE):
        for domain in batch:
            try:
                _check(domain, on, notify)
            except DatabaseError:
                # A lock timeout: the next run checks this domain again, and the others continue.
                log.exception("reports of a domain could not be checked", extra={"data": {"domain": domain.id}})


def _batches(*, since: date) -> Iterator[Sequence[Domain]]:
    reported = DomainReport.objects.filter(
        kind=DomainReport.AggregateKind.DMARC,
        state=DomainReport.ReadingState.READ,
        begin_at__gte=datetime.combine(since, datetime.min.time(), UTC),
    )
    rows = DmarcRow.objects.filter(report__in=reported.values("id"))
    domains = Domain.objects.filter(id__in=rows.values("domain"), workspace__deletes_at=None)
    domains = domains.select_related("workspace").order_by("id")
    batch = list(domains[:BATCH])
    while batch:
        yield batch
        batch = list(domains.filter(id__gt=batch[-1].id)[:BATCH])


def _check(domain: Domain, today: date, notify: Notify) -> None:
    for incident in find_incidents(domain, today=today):
        with transaction.atomic():
            if run(CLAIM, {"domain": to_uuid(domain.id, prefix="dom_"), "kind": incident.kind.value}):
                details = {"domainId": domain.id, "name": domain.name, **incident.details}
                record_events([NewEvent(incident.kind, workspace_id=domain.workspace_id, details=details)])
                notify(domain, kind=incident.kind, summary=incident.summary)


def find_incidents(domain: Domain, *, today: date) -> list[Incident]:
    """Return what the last two days with reports say; nothing if they are too old."""
    # Anybody may write a report about the future.
    newest = DmarcRow.objects.filter(domain=domain, day__lte=today).aggregate(day=Max("day"))["day"]
    if newest is None or today - newest > MAX_AGE:
        return []
    end = newest + DAY
    first = end - WINDOW_DAYS * DAY
    window = read_comparison(domain, first=first, end=end)
    earlier = read_comparison(domain, first=first - USUAL_DAYS * DAY, end=first)
    return [*_auth_failing(window), *_spoofed(window, earlier), *_replay(window)]


def _auth_failing(window: DmarcComparison) -> Iterator[Incident]:
    messages, aligned = window.messages_of(FROM_OUR_SERVERS), window.aligned_of(FROM_OUR_SERVERS)
    if messages >= MIN_MESSAGES and aligned < MIN_ALIGNED * messages:
        values = {"messages": f"{messages:,}", "failed": f"{messages - aligned:,}"}
        summary = CodedText("domains.auth_failing", **values)
        yield Incident(EventKind.DOMAIN_AUTH_FAILING, summary, {"messages": messages, "aligned": aligned})


def _spoofed(window: DmarcComparison, earlier: DmarcComparison) -> Iterator[Incident]:
    """Yield the day with most unknown messages, if they are many times as many as on a usual day."""
    counted = [_unknown(day) for day in earlier.days]
    usual = median([*counted, *[0] * (USUAL_DAYS - len(counted))])
    worst = max(window.days, key=_unknown, default=None)
    if worst and _unknown(worst) >= max(MIN_SPOOFED, SPOOFED_TIMES * usual):
        count = _unknown(worst)
        values = {"messages": f"{count:,}", "day": worst.day.isoformat(), "usual": f"{usual:,.0f}"}
        details = {"date": worst.day.isoformat(), "messages": count, "usual": round(usual)}
        yield Incident(EventKind.DOMAIN_SPOOFED, CodedText("domains.spoofed", **values), details)


def _replay(window: DmarcComparison) -> Iterator[Incident]:
    """Yield the organization with most signed messages beyond those that were sent to it."""
    signed = [(one, one.messages_of(SIGNED)) for one in window.all_organizations]
    replayed = [
        (one, passed)
        for one, passed in signed
        if passed > REPLAY_TIMES * one.sent and passed - one.sent >= MIN_REPLAYED
    ]
    if replayed:
        worst, messages = max(replayed, key=lambda pair: pair[1] - pair[0].sent)
        values = {"organization": worst.name, "messages": f"{messages:,}", "sent": f"{worst.sent:,}"}
        details = {"organization": worst.organization, "messages": messages, "sent": worst.sent}
        yield Incident(EventKind.DOMAIN_REPLAY, CodedText("domains.replay", **values), details)


def _unknown(day: DayReport) -> int:
    return day.by_class[Whose.UNKNOWN]
