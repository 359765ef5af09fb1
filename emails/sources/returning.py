"""Paces of addresses that leave because of a listing, and of those that come back (docs/decisions/0367)."""

from collections.abc import Collection

from django.db.models import QuerySet
from django.db.models.functions import Now

from core.delivery.pacing.pace import Pace
from emails.models import ReceiverPace

MINUTES_OF_A_DAY = 1440


def keep_rates(addresses: Collection[str]) -> None:
    """Keep the rate of addresses at each receiver, in messages a minute, when a list has taken them."""
    for row in _lock(addresses).filter(former_rate=None):
        now = row.clock.timestamp()  # type: ignore[attr-defined]
        pair = row.pair.at(now)
        rate = pair.pace.rate(now) or pair.pace.accepted_rate(now)
        row.former_rate = max(rate, max(row.accepted, row.accepted_before) / MINUTES_OF_A_DAY)
        row.save(update_fields=["former_rate"])


def return_at_half(addresses: Collection[str]) -> None:
    """Let addresses send again, at half of their former rates, when no list has them any more."""
    for row in _lock(addresses).exclude(former_rate=None):
        now = row.clock.timestamp()  # type: ignore[attr-defined]
        assert row.former_rate is not None
        pace = Pace.from_json(row.pace).returned(now, former_rate=row.former_rate)
        row.pace, row.former_rate, row.updated_at = pace.to_json(), None, row.clock  # type: ignore[attr-defined]
        row.save(update_fields=["pace", "former_rate", "updated_at"])


def _lock(addresses: Collection[str]) -> QuerySet[ReceiverPace]:
    """Return the locked rows of sources with any of some addresses, in the order of all who lock them."""
    names = ReceiverPace.objects.exclude(source="").values_list("source", flat=True).distinct()
    sources = [name for name in names if not {*name.split(" ")}.isdisjoint(addresses)]
    rows = ReceiverPace.objects.select_for_update().filter(source__in=sources)
    return rows.annotate(clock=Now()).order_by("id")
