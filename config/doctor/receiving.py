"""Checks of receiving: port 25 of the mail hosts, and the MX records that lead to them."""

import asyncio
import smtplib
from collections.abc import Sequence

from django.conf import settings

from config.doctor.diagnosis import Diagnosis, DoctorOptions, failed, ok, skip, warning
from core.delivery.transports.smtp.mx import MxLookup, NoMxHost
from core.lib.network.address_guard import Guard, TargetRefused
from core.lib.network.public_suffixes import organizational_domain
from core.lib.network.resolver import DnsError, Resolver
from domains.models import ReceivingDomain
from domains.receiving.services import expected_mx, mail_hosts
from domains.record_checks.receiving import ExpectedMx, check_receiving
from domains.record_checks.results import ReceivingCheck, RecordStatus

CONNECT_SECONDS = 10.0
# Each takes two lookups.
MAX_DOMAINS = 100
NOBODY = "No workspace receives email."
OPEN_PORT = (
    "Start manage.py inbound there, lead port 25 to INBOUND_PORT, and open incoming port 25 in the firewall and at the "
    "hosting provider; or correct RECEIVING_MX."
)


def check_mail_hosts(_: DoctorOptions) -> Diagnosis:
    if settings.EMBEDDED:
        return skip("Not needed in embedded mode.")
    if not settings.RECEIVING_DOMAIN and not ReceivingDomain.objects.exists():
        return ok(NOBODY)
    hosts = mail_hosts()
    if not hosts:
        return failed(
            "Domains cannot receive: this service has no name for MX records.",
            remedy="Set RECEIVING_MX to the public name of the server with manage.py inbound: mail.example.com.",
        )
    for host in hosts:
        if problem := _find_problem(host):
            return failed(f"Email cannot be received: {problem}", remedy=OPEN_PORT)
    return ok(f"{', '.join(hosts)} can be reached on port {settings.DIRECT_SMTP_PORT}.")


def check_shared_domain(_: DoctorOptions) -> Diagnosis:
    name = settings.RECEIVING_DOMAIN
    if not name or settings.EMBEDDED:
        return ok("RECEIVING_DOMAIN is not set.") if not name else skip("Not needed in embedded mode.")
    (check,) = asyncio.run(_check_all([ExpectedMx("", name, organizational_domain(name), mail_hosts())]))
    if check.mx.status is RecordStatus.VALID:
        return ok(f"The MX records of {name} lead to this service.")
    value = next(iter(mail_hosts()), "the name of this server")
    return failed(
        f"The addresses of workspaces receive nothing: {check.mx.error}",
        remedy=f"Publish an MX record at {name} with preference 10 and the value {value}.",
    )


def check_domains(_: DoctorOptions) -> Diagnosis:
    active = ReceivingDomain.objects.filter(status=ReceivingDomain.ReceivingStatus.ACTIVE).order_by("-created_at")
    domains = [receiving.domain for receiving in active.select_related("domain")[:MAX_DOMAINS]]
    if not domains:
        return ok(NOBODY)
    checks = asyncio.run(_check_all([expected for domain in domains if (expected := expected_mx(domain))]))
    broken = [check for check in checks if check.mx.status in {RecordStatus.MISSING, RecordStatus.INVALID}]
    if broken:
        return warning(
            f"{len(broken)} of {len(checks)} receiving domains lead elsewhere. One of them: {broken[0].mx.error}",
            remedy="If all fail, see RECEIVING_MX. Otherwise their workspaces have to correct them within 72 hours.",
        )
    return ok(f"The MX records of {len(checks)} receiving domains lead here.")


def _find_problem(host: str) -> str:
    """Return the reason why a mail host does not answer; empty if each of its addresses greets."""
    mx = MxLookup(Resolver(settings.DNS_SERVERS), Guard(allow_private=True))
    try:
        addresses = asyncio.run(mx.addresses(host))
    except (NoMxHost, TargetRefused, DnsError) as error:
        return f"{host} has no usable address: {error}"
    for address in addresses:
        try:
            with smtplib.SMTP(str(address), settings.DIRECT_SMTP_PORT, timeout=CONNECT_SECONDS) as client:
                client.ehlo_or_helo_if_needed()
        except (OSError, smtplib.SMTPException) as error:
            return f"{host} ({address}) cannot be reached on port {settings.DIRECT_SMTP_PORT}: {error}"
    return ""


async def _check_all(expected: Sequence[ExpectedMx]) -> list[ReceivingCheck]:
    resolver = Resolver(settings.DNS_SERVERS)
    return await asyncio.gather(*(check_receiving(one, resolver) for one in expected))
