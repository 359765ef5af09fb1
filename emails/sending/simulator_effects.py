"""Simulator effects: the opens, clicks, complaints and unsubscribes of a simulated recipient."""

from collections.abc import Iterator, Sequence

from django.conf import settings

from emails.feedback.opens_and_clicks import Hit, record_hits
from emails.feedback.reports import ReportedEvent, record_reports
from emails.sending.outcomes import SendResult
from events.kinds import EventKind

HITS = ("opened", "clicked")


def apply_simulator_effects(results: Sequence[SendResult]) -> None:
    """Record the follow-up events of simulated outcomes in the caller's transaction.

    See core.delivery.transports.simulator.
    """
    hits = list(_hits(results))
    reports = list(_reports(results))
    if hits:
        record_hits(hits)
    if reports:
        record_reports(reports)


def _hits(results: Sequence[SendResult]) -> Iterator[Hit]:
    for result in results:
        for name in result.outcome.simulated_events:
            if name in HITS:
                yield Hit(result.claim.recipient_id, url=settings.PUBLIC_URL if name == "clicked" else None)


def _reports(results: Sequence[SendResult]) -> Iterator[ReportedEvent]:
    for result in results:
        for name in result.outcome.simulated_events:
            if name not in HITS:
                yield ReportedEvent(
                    result.claim.recipient_id,
                    EventKind(name),
                    never_suppresses=result.outcome.never_suppresses,
                )
