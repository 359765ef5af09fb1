"""Play what a simulated recipient does after the delivery (delivery.transports.simulator)."""

from collections.abc import Iterator, Sequence

from django.conf import settings

from emails.events.opens_and_clicks import Hit, record_hits
from emails.events.reports import Reported, record_reports
from emails.models import Event
from emails.sending.outcomes import Result

HITS = ("opened", "clicked")


def play(results: Sequence[Result]) -> None:
    """Record the opens, clicks, complaints and unsubscriptions that outcomes announce; in the caller's transaction."""
    hits = list(_hits(results))
    reports = list(_reports(results))
    if hits:
        record_hits(hits)
    if reports:
        record_reports(reports)


def _hits(results: Sequence[Result]) -> Iterator[Hit]:
    for result in results:
        for name in result.outcome.then:
            if name in HITS:
                yield Hit(result.claim.recipient_id, url=settings.PUBLIC_URL if name == "clicked" else None)


def _reports(results: Sequence[Result]) -> Iterator[Reported]:
    for result in results:
        for name in result.outcome.then:
            if name not in HITS:
                yield Reported(
                    result.claim.recipient_id,
                    Event.Kind(name),
                    never_suppresses=result.outcome.never_suppresses,
                )
