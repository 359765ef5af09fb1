"""The watch: looks up own addresses in block lists and their reverse names, and records what has changed."""

import asyncio
from collections.abc import Collection, Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from ipaddress import ip_address
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.dispatch import Signal

from core.delivery.sources.answers import ListingAnswer, ReverseName
from core.delivery.sources.lookups import find_list_error, look_up_listing, look_up_reverse_name
from core.lib.network.address_guard import Address
from core.lib.network.resolver import Resolver
from emails.models import SourceListing, WatchedSource
from emails.sources.configured import current_specs
from emails.sources.own_addresses import watched_addresses, watched_lists
from emails.sources.returning import keep_rates, return_at_half

# Sent with the argument `listings`, in the transaction that records them: those that the staff must be told of.
sources_listed = Signal()

LOOK_UP_EVERY = timedelta(hours=1)
# Addresses that are gone from the settings are kept while processes with the former settings may still run.
FORGET_AFTER = timedelta(hours=2)
MAX_LOOKUPS_AT_ONCE = 20
LOOKUP_SECONDS = 5.0
# For all lookups of a run; what has no answer by then is looked up again an hour later.
TOTAL_SECONDS = 240.0
UNANSWERED = "there was no time for the lookup"


@dataclass
class SourceFinding:
    """What the lookups of a run say about an address. answers: by the name of the list."""

    reverse_name: ReverseName = field(default_factory=lambda: ReverseName(None, error=UNANSWERED))
    answers: dict[str, ListingAnswer] = field(default_factory=dict)


def watch_sources() -> None:
    """Look up the addresses whose last lookup is an hour ago, and record the results."""
    addresses = watched_addresses()
    _forget_others(addresses)
    if due := _due_addresses(addresses):
        record_findings(asyncio.run(look_up_sources(due, lists=watched_lists())))


async def look_up_sources(addresses: Collection[Address], *, lists: Mapping[str, str]) -> dict[Address, SourceFinding]:
    """Return what block lists and the DNS say about addresses. lists: zones by name."""
    unanswered = ListingAnswer(None, error=UNANSWERED)
    findings = {address: SourceFinding(answers=dict.fromkeys(lists, unanswered)) for address in addresses}
    lookups = _SourceLookups(findings)
    asked = [lookups.ask_list(name, zone) for name, zone in lists.items()]
    await _run_until(TOTAL_SECONDS, [*asked, *map(lookups.ask_reverse_name, addresses)])
    return findings


class _SourceLookups:
    """The lookups of a run, which write what they find into the findings."""

    def __init__(self, findings: dict[Address, SourceFinding]) -> None:
        self._findings = findings
        self._resolver = Resolver(settings.DNS_SERVERS, lifetime_seconds=LOOKUP_SECONDS)
        self._limit = asyncio.Semaphore(MAX_LOOKUPS_AT_ONCE)

    async def ask_list(self, name: str, zone: str) -> None:
        """Ask a list about all addresses, if it can be asked at all."""
        async with self._limit:
            error = await find_list_error(self._resolver, zone)
        if not error:
            await asyncio.gather(*(self._ask_about(address, name, zone) for address in self._findings))
            return
        for finding in self._findings.values():
            finding.answers[name] = ListingAnswer(None, error=error)

    async def _ask_about(self, address: Address, name: str, zone: str) -> None:
        async with self._limit:
            self._findings[address].answers[name] = await look_up_listing(self._resolver, address, zone)

    async def ask_reverse_name(self, address: Address) -> None:
        async with self._limit:
            self._findings[address].reverse_name = await look_up_reverse_name(self._resolver, address)


@transaction.atomic
def record_findings(findings: Mapping[Address, SourceFinding]) -> None:
    """Save the results of a run, and send sources_listed about new listings.

    Concurrent runs wait for each other here, so that each listing is new once.
    """
    names = [*map(str, findings)]
    WatchedSource.objects.bulk_create([WatchedSource(address=name) for name in names], ignore_conflicts=True)
    locked = WatchedSource.objects.select_for_update().filter(address__in=names).order_by("address")
    sources = list(locked.annotate(clock=Now()))
    for source in sources:
        source.note_reverse_name(findings[ip_address(source.address)].reverse_name, at=source.clock)
    fields = ["looked_up_at", "reverse_status", "reverse_names", "reverse_checked_at", "reverse_error"]
    WatchedSource.objects.bulk_update(sources, fields)
    listings, news = _note_answers(sources, findings)
    SourceListing.objects.filter(source__in=sources).exclude(name__in=watched_lists()).delete()
    created = [listing for listing in listings if not listing.pk]
    updated = [listing for listing in listings if listing.pk]
    SourceListing.objects.bulk_create(created)
    fields = ["listed_at", "checked_at", "codes", "text", "error", "notified_at"]
    SourceListing.objects.bulk_update(updated, fields)
    _follow_listings(sources)
    if news:
        sources_listed.send(SourceListing, listings=news)


def _follow_listings(sources: Collection[WatchedSource]) -> None:
    """Keep the rates of addresses that new messages leave now, and let those return that they do not leave any more."""
    specs, watched = current_specs(), watched_addresses()
    addresses = {source.address for source in sources}
    leaving = {
        address
        for address in addresses
        if any(specs[name].leave_when_listed for name in watched.get(ip_address(address), ()))
    }
    found = SourceListing.objects.of(leaving, lists=watched_lists()).listed()
    listed = {*found.values_list("source__address", flat=True)} if leaving else set[str]()
    if listed:
        keep_rates(listed)
    if returning := addresses - listed:
        return_at_half(returning)


def _note_answers(
    sources: Collection[Any], findings: Mapping[Address, SourceFinding]
) -> tuple[list[SourceListing], list[SourceListing]]:
    """Return the listings of all sources with their new answers, and those of them that the staff must be told of."""
    known = {(row.source_id, row.name): row for row in SourceListing.objects.filter(source__in=sources)}
    listings, news = [], []
    for source in sources:
        for name, answer in findings[ip_address(source.address)].answers.items():
            listing = known.get((source.id, name)) or SourceListing(source=source, name=name)
            listing.source = source
            if listing.note_answer(answer, at=source.clock):
                news.append(listing)
            listings.append(listing)
    return listings, news


def _due_addresses(addresses: Collection[Address]) -> list[Address]:
    recent = WatchedSource.objects.filter(looked_up_at__gt=Now() - LOOK_UP_EVERY).values_list("address", flat=True)
    known = set(map(ip_address, recent))
    return [address for address in addresses if address not in known]


def _forget_others(addresses: Collection[Address]) -> None:
    """Delete the rows of addresses that are not in the settings any more."""
    is_old = Q(looked_up_at__lt=Now() - FORGET_AFTER)
    WatchedSource.objects.filter(is_old).exclude(address__in=map(str, addresses)).delete()


async def _run_until(seconds: float, work: Collection[Coroutine[Any, Any, None]]) -> None:
    """Run all at the same time; cancel those that take longer. Raises the first exception of the others."""
    tasks = [asyncio.ensure_future(one) for one in work]
    done, late = await asyncio.wait(tasks, timeout=seconds)
    for task in late:
        task.cancel()
    await asyncio.gather(*late, return_exceptions=True)
    for task in done:
        task.result()
