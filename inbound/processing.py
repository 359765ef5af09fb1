"""Read what was told and write down what it means: after the answer was given, as often as it takes.

A row is claimed, read, and settled in the transaction that records it. What breaks on a row stays with that
row: it is tried ATTEMPTS times and then left for people to look at.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from django.db import InterfaceError, OperationalError, transaction

from emails.events.opens_and_clicks import Hit, record_hits
from emails.events.reports import Reported, record_reports
from inbound import matching, providers, queue
from inbound.models import MailReport, ProviderReport, Told
from lib.worker.failpoints import failpoint

log = logging.getLogger("postrider.inbound")

T = TypeVar("T", bound=Told)
Verdict = Told.ReportStatus

# How long a provider may know of a message that we have not written down yet.
PATIENCE = timedelta(hours=24)
FIRST_WAIT_SECONDS = 15.0


@dataclass(frozen=True)
class Meaning:
    """What a row comes to: something to record, or the verdict that there is nothing. Neither: ask again later."""

    reported: Reported | Hit | None = None
    verdict: Told.ReportStatus | None = None


Reader = Callable[[Sequence[T]], Mapping[int, Meaning]]


def process_all() -> None:
    """Process everything that is due, of both kinds. Any number of processes may do so at once."""
    _process(MailReport, meaning_of_mail)
    _process(ProviderReport, meaning_of_events)


def purge_all() -> None:
    """Delete what was settled long ago."""
    for kind in (MailReport, ProviderReport):
        while queue.purge(kind) == queue.PURGE_AT_ONCE:
            pass


def meaning_of_mail(rows: Sequence[MailReport]) -> dict[int, Meaning]:
    """Return what messages mean; the addresses of all their recipients are read at once."""
    read = {row.number: matching.read(row) for row in rows}
    known = matching.addresses(claimed for claimed, _ in read.values())
    return {number: Meaning(*matching.of_report(*one, known=known)) for number, one in read.items()}


def meaning_of_events(rows: Sequence[ProviderReport]) -> dict[int, Meaning]:
    """Return what events mean; one whose message is not known yet waits."""
    known = providers.recipients({row.message_id for row in rows})
    return {row.number: _of_event(row, known.get(row.message_id)) for row in rows}


def _of_event(row: ProviderReport, recipient_id: str | None) -> Meaning:
    if recipient_id:
        return Meaning(reported=providers.reported(row, recipient_id))
    has_waited = queue.waited(row) > PATIENCE
    return Meaning(verdict=Verdict.NOT_OURS if has_waited else None)


def _process(kind: type[T], reader: Reader[T]) -> None:
    while rows := queue.claim(kind):
        failpoint("inbound.after_claim")
        worn_out = {row.number: Verdict.POISON for row in rows if row.attempts > queue.ATTEMPTS}
        if worn_out:
            log.error("reports were given up", extra={"numbers": list(worn_out)})
            queue.settle(kind, worn_out)
        _attempt(kind, [row for row in rows if row.number not in worn_out], reader)


def _attempt(kind: type[T], rows: Sequence[T], reader: Reader[T]) -> None:
    """Settle rows together, one by one where that breaks."""
    try:
        _settle(kind, rows, reader)
    except (OperationalError, InterfaceError):
        raise
    except Exception:
        if len(rows) == 1:
            log.exception("a report could not be processed", extra={"number": rows[0].number})
            return
        for row in rows:
            _attempt(kind, [row], reader)


def _settle(kind: type[T], rows: Sequence[T], reader: Reader[T]) -> None:
    """Record what rows mean, and settle them in the same transaction.

    Hits have one of their own: both acts lock recipients before emails, so neither may follow the other in one.
    Reports come first, since they may be told again without harm.
    """
    if not rows:
        return
    meanings = reader(rows)
    with transaction.atomic():
        reports = {number: one.reported for number, one in meanings.items() if isinstance(one.reported, Reported)}
        news = record_reports(list(reports.values()))
        verdicts = {number: one.verdict for number, one in meanings.items() if one.verdict}
        queue.settle(kind, verdicts | {number: NEWS[told] for number, told in zip(reports, news, strict=True)})
        failpoint("inbound.before_settle_commit")
    with transaction.atomic():
        hits = {number: one.reported for number, one in meanings.items() if isinstance(one.reported, Hit)}
        record_hits(list(hits.values()))
        queue.settle(kind, dict.fromkeys(hits, Verdict.RECORDED))
    failpoint("inbound.after_settle")
    for row in rows:
        if meanings[row.number] == Meaning():
            queue.put_off(kind, [row.number], seconds=_wait(row))


NEWS = {True: Verdict.RECORDED, False: Verdict.REPEATED, None: Verdict.NOT_OURS}


def _wait(row: Told) -> float:
    """Return the seconds until a row is looked at again: half as long as it has waited so far."""
    return max(FIRST_WAIT_SECONDS, queue.waited(row).total_seconds() / 2)
