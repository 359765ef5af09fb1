"""Checks of named transports that need the database: states, routes of streams, alignment of domains, block lists."""

import asyncio
from datetime import UTC, date, datetime, timedelta

from django.conf import settings
from django.db.models.functions import Now

from config.doctor.diagnosis import Diagnosis, DoctorOptions, failed, ok, skip, warning
from config.start.routes import alignment_warnings, route_errors
from console.system_mail.models import TlsReport, TlsReportState
from console.system_mail.tls_reports.message import find_report_key, is_report_key_record, report_key_record
from core.delivery.message.dkim import SigningKey
from core.delivery.sources.answers import ReverseStatus
from core.delivery.transports.router import TransportState
from core.delivery.transports.transports_file import Overflow, TransportSpec
from core.lib.network.resolver import DnsError, Resolver
from emails.models import SourceListing, WatchedSource
from emails.pacing.paces import is_direct
from emails.receivers.pair_status import PairStatus, find_pairs, read_pair_statuses
from emails.receivers.states import PairState
from emails.sending.transport_status import read_statuses, recent_listings
from emails.sources.configured import current_specs
from emails.sources.own_addresses import new_addresses, watched_addresses, watched_lists
from emails.tls_policies.configured import direct_resolver

NOT_WATCHED = "No public address is in sourceAddresses of a direct transport, or BLOCKLISTS is empty."
# Lookups are hourly; a list that has not answered for so long cannot be asked.
OLDEST_ANSWER = timedelta(hours=6)
# Named by a check.
MAX_SHOWN = 10


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


def check_block_lists(_: DoctorOptions) -> Diagnosis:
    """Diagnose the last answers of block lists about own addresses (docs/decisions/0349)."""
    if not (addresses := [*map(str, watched_addresses())]):
        return skip(NOT_WATCHED)
    answers = SourceListing.objects.of(addresses, lists=watched_lists())
    if listed := answers.listed():
        texts = [f"{one.source.address} is on {one.name} since {one.listed_at:%Y-%m-%d}" for one in listed[:MAX_SHOWN]]
        urls = ", ".join(dict.fromkeys(one.removal_url for one in listed[:MAX_SHOWN] if one.removal_url))
        remedy = f"Find the cause, then request the removal: {urls or 'the list is not known to Postrider'}."
        return warning(f"{'; '.join(texts)}.", remedy=remedy)
    recent = answers.filter(checked_at__gt=Now() - OLDEST_ANSWER)
    errors = {one.name: one.error for one in answers.exclude(pk__in=recent.values("pk")) if one.error}
    if errors:
        texts = [f"{name}: {error}" for name, error in errors.items()]
        remedy = "Use a resolver of your own in DNS_SERVERS, register it with the list, or take it out of BLOCKLISTS."
        return warning(f"Block lists that cannot be asked: {'; '.join(texts)}.", remedy=remedy)
    if not recent.exists():
        return warning("No block list has been asked yet.", remedy="Start beat and the workers, and wait for an hour.")
    return ok(f"No block list has an address of: {', '.join(addresses[:MAX_SHOWN])}.")


def check_source_names(_: DoctorOptions) -> Diagnosis:
    """Diagnose the reverse names of own addresses, as of the last lookup."""
    if not (addresses := [*map(str, watched_addresses())]):
        return skip(NOT_WATCHED)
    known = WatchedSource.objects.filter(address__in=addresses).exclude(reverse_status="")
    if not known.exists():
        return skip("The reverse names have not been looked up yet.")
    wrong = known.exclude(reverse_status=ReverseStatus.CONFIRMED)
    texts = [
        f"{one.address} resolves to {', '.join(one.reverse_names) or 'no name'}" for one in wrong.order_by("address")
    ]
    if texts:
        return warning(
            f"Receivers distrust addresses without a name that leads back to them: {'; '.join(texts[:MAX_SHOWN])}.",
            remedy="Set the reverse DNS (PTR) of each address at the hosting provider, and the A or AAAA record of "
            "that name to the address.",
        )
    return ok("The names of the sending addresses lead back to them.")


def check_receivers(_: DoctorOptions) -> Diagnosis:
    """Diagnose the receivers that nothing is sent to now."""
    stopped, suspended = (find_pairs(state=state)[:MAX_SHOWN] for state in (PairState.STOPPED, PairState.SUSPENDED))
    if not (found := read_pair_statuses([*stopped, *suspended])):
        return ok("No receiver is suspended.")
    return warning(
        f"Nothing is sent to: {'; '.join(map(_suspension, found))}.",
        remedy="Find the cause in the reply. Email is sent again after the time; manage.py receivers release RECEIVER "
        "ends a suspension now.",
    )


def check_tls_policies(_: DoctorOptions) -> Diagnosis:
    """Diagnose whether DANE can be used: its records count only if a resolver has validated them."""
    if not is_direct() or not settings.DELIVERY_TLS_POLICIES:
        return skip("No direct transport follows the TLS policies of recipient domains.")
    remedy = "Set DNSSEC_RESOLVER to a resolver on this machine that validates DNSSEC, such as 127.0.0.1:53 of Unbound."
    if not settings.DNSSEC_RESOLVER:
        return ok("MTA-STS is on. DANE is off: DNSSEC_RESOLVER names no resolver that validates DNSSEC.")
    try:
        answer = asyncio.run(direct_resolver().look_up(".", "NS"))
    except DnsError as error:
        return failed(f"DNSSEC_RESOLVER does not answer, and nothing is delivered directly: {error}", remedy=remedy)
    if not answer.is_secure:
        return warning("DANE is off: DNSSEC_RESOLVER does not validate the root zone.", remedy=remedy)
    return ok("MTA-STS and DANE are on.")


def check_tls_reports(_: DoctorOptions) -> Diagnosis:
    """Diagnose whether TLS reports are signed and leave: receivers ignore one whose key has another service type."""
    domain = settings.TLSRPT_DOMAIN
    if not domain:
        return skip("TLSRPT_DOMAIN is not set.")
    if not is_direct() or not settings.DELIVERY_TLS_POLICIES:
        remedy = "Remove TLSRPT_DOMAIN, or use a direct transport with DELIVERY_TLS_POLICIES=on."
        return warning("No TLS reports are made: no direct transport follows TLS policies.", remedy=remedy)
    key = find_report_key()
    if key is None:
        return failed(
            f"TLS reports are not sent by email, because no workspace has verified {domain}, which is TLSRPT_DOMAIN.",
            remedy=f"Add {domain} as a sending domain of a workspace, publish its DNS records, and verify it.",
        )
    name = f"{key.selector}._domainkey.{domain}"
    if error := _find_key_error(name, key):
        return failed(error, remedy=f"Publish the TXT record {report_key_record(key)} at {name}.")
    if count := TlsReport.objects.count_by_state()[TlsReportState.FAILED]:
        remedy = "The page Receivers of the staff admin has the reasons; most often the address is wrong."
        return warning(f"{count} TLS reports of the last seven days could not be sent.", remedy=remedy)
    return ok("TLS reports are sent and signed.")


def _find_key_error(name: str, key: SigningKey) -> str:
    try:
        answer = asyncio.run(Resolver(settings.DNS_SERVERS).look_up(name, "TXT"))
    except DnsError as error:
        return f"The key of TLS reports cannot be looked up: {error}"
    is_published = any(is_report_key_record(text, key) for text in answer.records)
    return "" if is_published else f"{name} does not have the key that signs TLS reports, so receivers ignore them."


def check_new_addresses(_: DoctorOptions) -> Diagnosis:
    """Diagnose the first days of new addresses, and the other ways of what exceeds their messages of a day."""
    if not new_addresses():
        return ok("No address in sourceAddresses has since.")
    today, texts = datetime.now(UTC).date(), list[str]()
    for spec in current_specs().values():
        days = {address: day for address, day in spec.since.items() if _is_new(day, today)}
        texts += [f"{address} sends nothing before {day}" for address, day in days.items() if day > today]
        if days and not _has_other_way(spec):
            texts.append(f"email waits for the next day once {', '.join(map(str, days))} have sent their messages")
    if texts:
        remedy = (
            "Correct since, add an address without it, or a further transport to the routes, if email must not wait."
        )
        return warning(f"New addresses: {'; '.join(texts[:MAX_SHOWN])}.", remedy=remedy)
    return ok("Email that exceeds the messages of a day of new addresses has another way.")


def _is_new(day: date, today: date) -> bool:
    return (today - day).days < len(settings.RECEIVERS.default.warm_up)


def _has_other_way(spec: TransportSpec) -> bool:
    """Return whether what exceeds the messages of a day leaves by a warm address, or by another transport."""
    if spec.overflow is Overflow.WAIT:
        return False
    routes = (route for route in settings.TRANSPORTS.routes.values() if spec.name in route.use)
    is_followed = all(route.use[-1] != spec.name for route in routes)
    return is_followed or any(address not in spec.since for address in spec.source_addresses)


def _suspension(one: PairStatus) -> str:
    source = f" from {one.source}" if one.source else ""
    if one.state is PairState.STOPPED:
        return f"{one.name}{source}, suspended by the staff"
    return f"{one.name}{source} until {one.until:%H:%M} UTC, after {one.reply[:200]!r}"
