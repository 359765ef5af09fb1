"""Checks of how email leaves: port 25, the EHLO name, SPF, the return path and the relay."""

import asyncio
import smtplib
from dataclasses import dataclass

import dns.reversename
from django.conf import settings

from config.doctor.diagnosis import Diagnosis, DoctorOptions, Verdict, failed, ok, skip, warning
from core.delivery.transports.smtp.errors import SmtpError
from core.delivery.transports.smtp.mail_host import MailHost, Timeouts
from core.delivery.transports.smtp.mx import MxLookup, NoMxHost
from core.delivery.transports.smtp.session import Session
from core.delivery.transports.smtp.smtp_url import RelayUrl, parse_smtp_url
from core.delivery.transports.smtp.tls import TlsMode
from core.lib.email_addresses import parse_address
from core.lib.ids import new_uuid
from core.lib.network.address_guard import Address, Guard, TargetRefused
from core.lib.network.public_suffixes import organizational_domain
from core.lib.network.resolver import DnsAnswer, DnsError, Resolver
from domains.record_checks.dmarc import is_dmarc
from domains.record_checks.dns_cache import DnsCache
from domains.record_checks.record_lookup import RecordLookup
from domains.record_checks.results import RecordCheck, RecordStatus
from domains.record_checks.spf import check_spf as check_spf_record
from domains.record_checks.spf_syntax import parse_mechanisms
from domains.reports.addresses import has_report_addresses
from emails.sending.return_path import return_path

CONNECT_SECONDS = 10.0
TIMEOUTS = Timeouts(connect=CONNECT_SECONDS, banner=30, ehlo=30, tls=30, login=30, total=60)
EMBEDDED = "Not needed in embedded mode."
NOT_DIRECT = "Only needed with a direct transport."
ACCEPTED = 250
# It has no record of its own at RETURN_PATH_DOMAIN.
NO_SENDING_DOMAIN = "reports.example"
DEFAULT_RETURN_PATH_DOMAIN = "bounce.localhost"


@dataclass(frozen=True)
class MxHost:
    """A mail host of the return path domain and its addresses; empty with the reason in `error`."""

    name: str
    addresses: tuple[Address, ...] = ()
    error: str = ""


def check_port_25(options: DoctorOptions) -> Diagnosis:
    if not _direct_names():
        return skip(NOT_DIRECT)
    banners = [banner for domain in options.probe_domains if (banner := asyncio.run(_read_banner(domain)))]
    if any(banner.startswith("220") for banner in banners):
        return ok("Connections to mail hosts on port 25 work.")
    if banners:
        return failed(
            f"Mail hosts refuse this server: {banners[0]}",
            remedy="Read the reply: most often the address is on a block list, or has no reverse DNS.",
        )
    return failed(
        f"No mail host of {' or '.join(options.probe_domains)} can be reached on port 25.",
        remedy="Ask the hosting provider to open outgoing port 25, or send through a relay "
        "(DELIVERY_TRANSPORT=smtp with SMTP_URL).",
    )


def check_ehlo_forward(_: DoctorOptions) -> Diagnosis:
    names = _direct_names()
    if not names:
        return skip(NOT_DIRECT)
    for name in names:
        if "." not in name:
            return failed(
                f"EHLO_NAME is {name}, which mail hosts reject.",
                remedy="Set EHLO_NAME to the full host name of this server, such as mail.example.com.",
            )
        if not _addresses_of(name):
            return failed(
                f"{name} has no address in the DNS.",
                remedy=f"Publish an A record for {name} with the public address of this server.",
            )
    return ok(f"{', '.join(names)} has an address.")


def check_ehlo_reverse(_: DoctorOptions) -> Diagnosis:
    names = [name.lower().rstrip(".") for name in _direct_names()]
    for wanted, address in ((name, address) for name in names for address in _addresses_of(name)):
        found = _look_up(dns.reversename.from_address(address).to_text(omit_final_dot=True), "PTR").records
        if wanted not in found:
            shown = f"to {', '.join(found)}" if found else "to no name"
            return failed(
                f"{address}, an address of {wanted}, resolves back {shown}.",
                remedy=f"Set the reverse DNS (PTR) of {address} to {wanted} at the hosting provider.",
            )
    return ok(f"The addresses of {', '.join(names)} resolve back to it.")


def _direct_names() -> list[str]:
    """Return the EHLO names of the direct transports."""
    direct = [spec for spec in settings.TRANSPORTS.transports.values() if spec.kind == "direct"]
    if not settings.TRANSPORTS.is_named:
        return [settings.EHLO_NAME] if settings.DELIVERY_TRANSPORT == "direct" else []
    return list(dict.fromkeys(spec.ehlo_name or settings.EHLO_NAME for spec in direct))


def check_spf(_: DoctorOptions) -> Diagnosis:
    if settings.EMBEDDED:
        return skip(EMBEDDED)
    domain = parse_address(settings.SYSTEM_FROM).domain
    check = asyncio.run(_check_spf_record(domain))
    if check.status is RecordStatus.VALID:
        return ok(f"The SPF record of {domain}, the sender of system emails, allows SPF_MECHANISMS.")
    suggestion = f"Publish this TXT record at {domain}: {check.value or f'v=spf1 {settings.SPF_MECHANISMS} ~all'}"
    return failed(f"SPF of {domain}, the sender of system emails: {check.error}", remedy=suggestion)


def check_return_path(_: DoctorOptions) -> Diagnosis:
    if settings.EMBEDDED:
        return skip(EMBEDDED)
    domain = settings.RETURN_PATH_DOMAIN
    if domain == DEFAULT_RETURN_PATH_DOMAIN:
        return failed(
            "RETURN_PATH_DOMAIN is not set, so bounces cannot be received.",
            remedy="Set RETURN_PATH_DOMAIN to a name for this purpose, such as bounce.example.com.",
        )
    hosts = _mail_hosts(domain)
    lost = [host for host in hosts if host.error]
    if not hosts or lost:
        message = lost[0].error if lost else f"{domain} has no MX record, so bounces cannot be received."
        target = settings.EHLO_NAME if "." in settings.EHLO_NAME else "the host of manage.py inbound"
        return failed(message, remedy=f"Publish an MX record at {domain} with preference 10 and the value {target}.")
    return ok(f"Bounces go to {', '.join(host.name for host in hosts)}.")


def check_inbound(_: DoctorOptions) -> Diagnosis:
    for host in _mail_hosts(settings.RETURN_PATH_DOMAIN):
        for address in host.addresses:
            if problem := _refusal_of_return_path(address):
                return failed(
                    f"{host.name} ({address}), the mail host of {settings.RETURN_PATH_DOMAIN}, {problem}",
                    remedy="Start manage.py inbound there with these settings, lead port 25 to INBOUND_PORT, and open "
                    "the port in the firewall.",
                )
    return ok(f"Inbound accepts reports to {settings.RETURN_PATH_DOMAIN}.")


def check_report_domain(_: DoctorOptions) -> Diagnosis:
    """Check that reports about other domains may be sent to RETURN_PATH_DOMAIN (RFC 9990, section 4)."""
    domain = settings.RETURN_PATH_DOMAIN
    if not has_report_addresses():
        return skip("Only needed with RETURN_PATH_DOMAIN.")
    answer = _look_up(f"{NO_SENDING_DOMAIN}._report._dmarc.{domain}", "TXT")
    if any(map(is_dmarc, answer.records)):
        return ok(f"Receivers may send DMARC reports about all domains to {domain}.")
    return warning(
        f"Receivers send no DMARC reports to {domain}: it does not accept those about other domains.",
        remedy=f'Publish a TXT record at *._report._dmarc.{domain} with the value "v=DMARC1".',
    )


def check_relay(_: DoctorOptions) -> Diagnosis:
    relays = _relays()
    if not relays:
        return skip("Only needed with an SMTP relay.")
    diagnoses = [_check_relay(url, ehlo_name) for url, ehlo_name in relays]
    return max(diagnoses, key=lambda diagnosis: RELAY_VERDICTS.index(diagnosis.verdict))


def _relays() -> list[tuple[RelayUrl, str]]:
    """Return the relays of the transports, each with its EHLO name."""
    if settings.DELIVERY_TRANSPORT == "smtp":
        return [(parse_smtp_url(settings.SMTP_URL), settings.EHLO_NAME)]
    specs = settings.TRANSPORTS.transports.values()
    return [(spec.relay, spec.ehlo_name or settings.EHLO_NAME) for spec in specs if spec.relay]


def _check_relay(url: RelayUrl, ehlo_name: str) -> Diagnosis:
    host = MailHost(url.host, url.port, url.host, ehlo_name, tls=url.tls, login=url.login)
    try:
        is_secure = asyncio.run(_open_session(host))
    except SmtpError as error:
        remedy = RELAY_REMEDIES.get(error.stage.name, RELAY_REMEDIES["CONNECT"])
        return failed(f"The relay {url.host}:{url.port} cannot be used: {error}", remedy=remedy)
    if not is_secure and url.tls is not TlsMode.NONE:
        return warning(
            f"The relay {url.host}:{url.port} is used without TLS.",
            remedy="Use smtps:// or a relay with STARTTLS, or confirm with ?tls=none that the network is private.",
        )
    return ok(f"The relay {url.host}:{url.port} accepts connections{' over TLS' if is_secure else ''}.")


RELAY_VERDICTS = (Verdict.OK, Verdict.WARNING, Verdict.FAILED)
# Remedies by the stage of the session that failed.
RELAY_REMEDIES = {
    "CONNECT": "Compare host and port in SMTP_URL with the relay's documentation, and open the port in the firewall.",
    "STARTTLS": "Use the name in the relay's certificate in SMTP_URL, or install the authority that signed it "
    "(SSL_CERT_FILE).",
    "AUTH": "Correct the user and the password in SMTP_URL; encode special characters (%40 for @).",
}


async def _open_session(host: MailHost) -> bool:
    """Connect to a relay and log in; return whether the session is encrypted. Raises SmtpError."""
    deadline = asyncio.get_running_loop().time() + TIMEOUTS.total
    session = await Session.open(host, deadline=deadline, timeouts=TIMEOUTS)
    session.close()
    return session.is_secure


async def _read_banner(domain: str) -> str:
    """Return the first line of the first mail host of a domain that answers; "" if none does."""
    is_trial = settings.DELIVERY_ALLOW_PRIVATE_NETWORKS
    mx = MxLookup(Resolver(settings.DNS_SERVERS), Guard(allow_private=is_trial))
    try:
        host = (await mx.find(domain)).shuffled()[0]
        addresses = await mx.addresses(host)
    except (NoMxHost, TargetRefused, DnsError):
        return ""
    for address in addresses[:2]:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                reader, writer = await asyncio.open_connection(str(address), settings.DIRECT_SMTP_PORT)
                line = await reader.readline()
                writer.close()
        except (OSError, ValueError):
            continue
        return line.decode("ascii", "replace").strip()
    return ""


async def _check_spf_record(domain: str) -> RecordCheck:
    cache = DnsCache(Resolver(settings.DNS_SERVERS))
    try:
        lookup = RecordLookup(domain, organizational_domain(domain), cache)
        return await check_spf_record(lookup, required=parse_mechanisms(settings.SPF_MECHANISMS))
    except DnsError as error:
        return RecordCheck(RecordStatus.UNKNOWN, error=f"The DNS lookup failed: {error}.")
    finally:
        await cache.close()


def _refusal_of_return_path(address: Address) -> str:
    """Offer a report to a valid return path; return the reason if the server does not accept it."""
    recipient = return_path(new_uuid(), domain=settings.RETURN_PATH_DOMAIN)
    try:
        with smtplib.SMTP(str(address), settings.DIRECT_SMTP_PORT, timeout=CONNECT_SECONDS) as client:
            client.ehlo_or_helo_if_needed()
            client.mail("<>")
            code, text = client.rcpt(recipient)
    except (OSError, smtplib.SMTPException) as error:
        return f"cannot be reached on port {settings.DIRECT_SMTP_PORT}: {error}"
    return "" if code == ACCEPTED else f"refuses reports: {code} {text.decode('ascii', 'replace')}"


def _mail_hosts(domain: str) -> list[MxHost]:
    return [_resolve(name) for _, name in sorted(_look_up(domain, "MX").records) if name]


def _resolve(name: str) -> MxHost:
    mx = MxLookup(Resolver(settings.DNS_SERVERS), Guard(allow_private=True))
    try:
        return MxHost(name, asyncio.run(mx.addresses(name)))
    except (NoMxHost, TargetRefused, DnsError) as error:
        return MxHost(
            name, error=f"The mail host {name} of {settings.RETURN_PATH_DOMAIN} has no usable address: {error}"
        )


def _addresses_of(name: str) -> list[str]:
    return [address for kind in ("A", "AAAA") for address in _look_up(name, kind).records]


def _look_up(name: str, kind: str) -> DnsAnswer:
    """Raises DnsError."""
    return asyncio.run(Resolver(settings.DNS_SERVERS).look_up(name, kind))
