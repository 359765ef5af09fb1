"""`postrider domains`."""

import sys
from ipaddress import ip_address
from operator import attrgetter
from typing import Any, Optional

import click
from rich.text import Text

from postrider_client.answers import Domain, DomainRecord
from postrider_client.cli.commands import PostriderGroup, pass_invocation
from postrider_client.cli.error_messages import FAILED, UnknownName
from postrider_client.cli.invocation import Invocation
from postrider_client.cli.options import range_options
from postrider_client.cli.output import Column, cell, plain_text
from postrider_client.client import Postrider


def _tracking_host(domain: Domain) -> str:
    return f"{domain.tracking.host} ({domain.tracking.status})" if domain.tracking else ""


def _receiving(domain: Domain) -> str:
    return domain.receiving.status if domain.receiving and domain.receiving.enabled else ""


DOMAIN_COLUMNS = (
    Column("Domain", attrgetter("name")),
    Column("Status", attrgetter("status")),
    Column("TLS", attrgetter("tls")),
    Column("Tracking host", _tracking_host),
    Column("Receiving", _receiving),
    Column("Last checked", attrgetter("last_checked_at")),
    Column("Records to publish", lambda domain: len(missing_records(domain)) or ""),
)

DMARC_TOTALS = ("sent", "reported", "aligned", "forwarded", "known", "unknown")
SOURCE_COLUMNS = (
    Column("Source", lambda one: one.ip or "invalid address"),
    Column("Class", attrgetter("whose")),
    Column("Label", attrgetter("label")),
    Column("Messages", attrgetter("messages")),
    Column("Passed DMARC", attrgetter("aligned")),
    Column("Domains", lambda one: ", ".join(one.domains)),
)


@click.group(cls=PostriderGroup)
def domains() -> None:
    """Show sending domains, verify their DNS records, and read their DMARC reports."""


@domains.command("list")
@pass_invocation
def list_domains(invocation: Invocation) -> None:
    """List the sending domains."""
    with invocation.client() as client:
        invocation.output.show_rows(client.domains.list(), DOMAIN_COLUMNS)


@domains.command("records")
@click.argument("domain", metavar="DOMAIN")
@pass_invocation
def show_records(invocation: Invocation, domain: str) -> None:
    """Show the DNS records of a domain, given by name or id, and their last check."""
    with invocation.client() as client:
        _show_records(invocation, find_domain(client, domain))


@domains.command("verify")
@click.argument("domain", metavar="DOMAIN")
@pass_invocation
def verify_domain(invocation: Invocation, domain: str) -> None:
    """Check the DNS records now. The exit code is 0 if the domain is verified, and 1 otherwise."""
    with invocation.client() as client:
        verified = client.domains.verify(find_domain(client, domain).id)
    _show_records(invocation, verified)
    if verified.status != "verified":
        sys.exit(FAILED)


@domains.command("tracking")
@click.argument("domain", metavar="DOMAIN")
@click.argument("subdomain", metavar="SUBDOMAIN", required=False)
@click.option("--remove", is_flag=True, help="Links in new emails lead to the service again.")
@pass_invocation
def set_tracking_host(invocation: Invocation, domain: str, subdomain: Optional[str], remove: bool) -> None:  # noqa: FBT001
    """Give the links in a domain's emails a host, such as links.DOMAIN for the SUBDOMAIN links."""
    if remove == bool(subdomain):
        raise click.UsageError("Give a SUBDOMAIN, or --remove.")
    with invocation.client() as client:
        tracking = None if remove else {"subdomain": subdomain}
        changed = client.domains.update(find_domain(client, domain).id, tracking=tracking)
    _show_records(invocation, changed)


@domains.command("receiving")
@click.argument("domain", metavar="DOMAIN")
@click.option("--off", is_flag=True, help="Refuse email to the domain from now on.")
@pass_invocation
def set_receiving(invocation: Invocation, domain: str, off: bool) -> None:  # noqa: FBT001
    """Receive the email of a domain, once its MX record is found."""
    with invocation.client() as client:
        changed = client.domains.update(find_domain(client, domain).id, receiving=not off)
    _show_records(invocation, changed)


@domains.command("dmarc")
@click.argument("domain", metavar="DOMAIN")
@range_options
@pass_invocation
def show_dmarc(invocation: Invocation, /, *, domain: str, **query: Any) -> None:
    """Compare DMARC reports with the email that was sent, and show advice on the policy."""
    with invocation.client() as client:
        found = client.domains.dmarc(find_domain(client, domain).id, **query)
    output = invocation.output
    totals, advice = found.totals, found.advice
    fields = {name.replace("_", " ").capitalize(): getattr(totals, name) for name in DMARC_TOTALS}
    output.show_fields({**fields, "Policy": advice.policy, "Advice": advice.summary}, raw=found.raw)
    if output.is_table:
        for one in advice.requirements:
            output.console.print(Text(f"  {'met' if one.met else 'not met':8}{plain_text(one.text)}"), soft_wrap=True)
        for summary in found.organizations:
            output.console.print(Text(plain_text(summary.summary)), soft_wrap=True)
        if advice.record:
            value = f"{advice.record.fqdn}  {advice.record.type}  {advice.record.value}"
            output.console.print(Text(plain_text(value)), soft_wrap=True)


@domains.command("sources")
@click.argument("domain", metavar="DOMAIN")
@range_options
@pass_invocation
def list_sources(invocation: Invocation, /, *, domain: str, **query: Any) -> None:
    """List the addresses that send mail of a domain, by its DMARC reports."""
    with invocation.client() as client:
        found = client.domains.sources(find_domain(client, domain).id, **query)
    invocation.output.show_rows(found, SOURCE_COLUMNS)


@domains.command("name-source")
@click.argument("domain", metavar="DOMAIN")
@click.argument("source", metavar="SOURCE")
@click.argument("label", metavar="LABEL")
@pass_invocation
def name_source(invocation: Invocation, domain: str, source: str, label: str) -> None:
    """Name another sender of a domain by an IP address or a domain; an empty LABEL forgets it."""
    with invocation.client() as client:
        named = {"ip" if is_address(source) else "domain": source}
        found = client.domains.name_source(find_domain(client, domain).id, label=label, **named)
    invocation.output.show_rows(found, SOURCE_COLUMNS)


def is_address(text: str) -> bool:
    """Return whether a source is an IP address; otherwise it is a domain."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def find_domain(client: Postrider, name_or_id: str) -> Domain:
    """Return a domain by its name or id. Raises UnknownName."""
    name = name_or_id.lower().rstrip(".")
    found = next((one for one in client.domains.list() if one.name == name or one.id == name_or_id), None)
    if found is None:
        raise UnknownName(f"This workspace has no domain {name_or_id}.")
    return found


def missing_records(domain: Domain) -> list[DomainRecord]:
    """Return the required records that the last check did not find as expected."""
    return [one for one in domain.records if one.required and one.status != "verified"]


def _show_record(invocation: Invocation, record: DomainRecord) -> None:
    """Print a record without line breaks in its name and value, so that they can be copied."""
    need = "required" if record.required else "recommended"
    title = Text.assemble(("\n" + plain_text(record.record), "bold"), f"  {record.type}  {need}  ", cell(record.status))
    invocation.output.console.print(title)
    fields = {"name": record.fqdn, "value": record.value, "found": record.found, "problem": record.error}
    for name, value in fields.items():
        if value:
            invocation.output.console.print(Text(f"  {name:8}{plain_text(value)}"), soft_wrap=True)


def _show_records(invocation: Invocation, domain: Domain) -> None:
    output = invocation.output
    fields: dict[str, Any] = {"Domain": domain.name, "Status": domain.status, "Last checked": domain.last_checked_at}
    if domain.tracking:
        fields["Tracking host"] = _tracking_host(domain)
    fields["Receiving"] = _receiving(domain)
    output.show_fields(fields, raw=domain.raw)
    if output.is_table:
        for record in domain.records:
            _show_record(invocation, record)
    if domain.tracking and domain.tracking.error:
        output.warn(domain.tracking.error)
    if domain.receiving and domain.receiving.error:
        output.warn(domain.receiving.error)
    for warning in domain.warnings or ():
        output.warn(warning.message)
