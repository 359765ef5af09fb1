"""Checks of named transports against the database: routes of streams, and alignment of domains."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.conf import settings
from django.core import checks
from django.db import Error

from config.checks import refuse_start
from domains.models import Domain
from domains.services import find_unaligned
from streams.models import Stream

SHOWN_DOMAINS = 20


def check_transports(databases: Sequence[str] | None = None, **_: Any) -> list[checks.CheckMessage]:
    """Warn about transports, for commands that check the database, such as migrate."""
    messages = transport_warnings() if databases else []
    return [checks.Warning(message, id="postrider.W002") for message in messages]


def refuse_unknown_routes() -> None:
    """Exit if a stream has a route that is not in the settings; for workers. An unavailable database is no reason."""
    refuse_start(_without_database_errors(route_errors()))


def route_errors() -> Iterator[str]:
    """Yield a message for each route of a stream that is not in the settings."""
    named = Stream.objects.exclude(transport_route="").exclude(transport_route__in=[*settings.TRANSPORTS.routes])
    for stream in named.order_by("workspace_id", "slug"):
        yield (
            f"TRANSPORTS_FILE: there is no route {stream.transport_route!r}, which the stream {stream.slug!r} of the "
            f"workspace {stream.workspace_id} uses. Add it, or change the stream in /admin/."
        )


def transport_warnings() -> list[str]:
    """Return the messages about routes and alignment; none while the database is unreachable or not migrated."""
    return _without_database_errors(itertools.chain(route_errors(), alignment_warnings()))


def alignment_warnings() -> Iterator[str]:
    """Yield a message for each transport from which mail of some domains fails SPF."""
    for name, spec in settings.TRANSPORTS.transports.items():
        if domains := find_unaligned(Domain.objects.all(), spf=spec.spf):
            more = f" and {len(domains) - SHOWN_DOMAINS} more" if len(domains) > SHOWN_DOMAINS else ""
            yield (
                f"domain_not_aligned: the SPF records of {', '.join(domains[:SHOWN_DOMAINS])}{more} lack {spec.spf}, "
                f"so their mail by the transport {name!r} is not aligned. Their pages show the new records."
            )


def _without_database_errors(messages: Iterable[str]) -> list[str]:
    try:
        return list(messages)
    except Error:
        return []
