"""Checks of named transports that need the database: alignment of domains, and the routes of streams."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.conf import settings
from django.core import checks
from django.db import Error

from config.checks import refuse_start
from config.doctor.diagnosis import Diagnosis, DoctorOptions, failed, ok, warning
from core.delivery.transports.router import TransportState
from domains.models import Domain
from domains.services import find_unaligned
from emails.sending.transport_status import read_statuses, recent_listings
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


def check_states(_: DoctorOptions) -> Diagnosis:
    """Diagnose the states of named transports: a paused one costs nothing while another one works."""
    if errors := list(route_errors()):
        return failed(" ".join(errors), remedy="Correct TRANSPORTS_FILE or the streams, and restart the workers.")
    if listings := [f"{listed_by} (transport {name})" for name, listed_by in recent_listings()]:
        text = f"Receivers refused the address within a day because of block lists: {', '.join(listings)}."
        return warning(text, remedy="Find the cause, and request the removal on the page that the replies name.")
    if not settings.TRANSPORTS.is_named:
        return ok("There is one transport.")
    statuses = read_statuses()
    paused = [status for status in statuses if status.state in (TransportState.PAUSED, TransportState.PROBING)]
    if paused:
        texts = [f"{status.name} is {status.state}: {status.last_error}" for status in paused]
        return warning(" ".join(texts), remedy="Correct its settings or its host. It is used again by itself.")
    drained = [status.name for status in statuses if status.state == TransportState.DRAINING]
    if drained:
        names = ", ".join(drained)
        return warning(f"Drained: {names}.", remedy="Run manage.py transport resume NAME to use it again.")
    return ok(f"In use: {', '.join(status.name for status in statuses)}.")


def check_alignment(_: DoctorOptions) -> Diagnosis:
    """Diagnose whether the SPF records of sending domains let every transport send."""
    if messages := list(alignment_warnings()):
        return warning(" ".join(messages), remedy="Ask their owners to publish the records, or take the transport out.")
    return ok("The SPF records of all sending domains allow all transports.")


def _without_database_errors(messages: Iterable[str]) -> list[str]:
    try:
        return list(messages)
    except Error:
        return []
