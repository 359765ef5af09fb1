"""DNS records of a domain as its pages show them: names in the zone, one sentence about all, advice for a provider."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from console.dashboard.ui.refresh import Refresh, refresh_of
from core.lib.coded_texts import CodedText
from core.lib.translation import translate
from domains.dns_providers import PROVIDERS
from domains.models import Domain
from domains.records import DnsRecord, list_records, list_warnings

DomainStatus = Domain.DomainStatus

# The purpose of each record, below its name in the table.
PURPOSES = {
    "DKIM": gettext_lazy("Verifies the signature of each email"),
    "SPF": gettext_lazy("Lists the servers that may send"),
    "DMARC": gettext_lazy("Tells receivers how to treat forged email"),
    "ReturnPath": gettext_lazy("Receives bounces under your own name"),
    "Tracking": gettext_lazy("Gives the links in your emails your own name"),
    "TrackingCAA": gettext_lazy("Permits the certificate for the links"),
    "Receiving": gettext_lazy("Brings email to addresses of the domain here"),
    "TLSReports": gettext_lazy("Asks senders for reports about encrypted delivery"),
}
# Code of a DnsProvider → what is peculiar to its form.
PROVIDER_NOTES: dict[str, str | Promise] = {
    "no_proxy": gettext_lazy("Set the proxy status of CNAME records to “DNS only” (grey cloud)."),
    "one_piece": gettext_lazy("Enter values in one piece and without quotation marks; the form splits long ones."),
    "split_quotes": gettext_lazy(
        "Put TXT values in double quotes, and split those of more than 255 characters as the zone file does."
    ),
    "quotes": gettext_lazy("Put TXT values in double quotes."),
    "final_dot": gettext_lazy("A CNAME value ends with a dot."),
    "empty_name": gettext_lazy("Leave the name empty where it says @."),
    "advanced_dns": gettext_lazy("The form is under Advanced DNS."),
    "custom_records": gettext_lazy("The form is under DNS Settings, Custom records."),
    "decline": gettext_lazy("If it offers to deactivate other records, decline."),
}
# Errors that the state of a record says, too.
MISSING = {"domains.no_txt", "domains.no_spf", "domains.no_dmarc", "domains.no_cname"}
# Errors that all records of a domain have at once: the sentence above the list.
SHARED = {"domains.absent", "domains.server_failure", "domains.lookup_failed"}
# A text of a TXT record has at most 255 bytes; a longer value consists of several.
TXT_BYTES = 255


@dataclass(frozen=True)
class RecordRow:
    """A record in the list.

    name: as most forms of DNS providers take it, relative to the zone.
    error, note: of the last check, in the language of the page.
    is_wrong: another value is published.
    """

    record: DnsRecord
    name: str
    purpose: str | Promise
    error: str
    note: str
    is_wrong: bool


@dataclass(frozen=True)
class Summary:
    """One sentence about all records. tone: of a notice."""

    tone: str
    icon: str
    text: str


@dataclass(frozen=True)
class ProviderAdvice:
    """How to enter records at a provider. name: empty for an unknown one."""

    name: str
    url: str
    notes: Sequence[str | Promise]


def records_context(domain: Domain) -> dict[str, Any]:
    """Return the context of parts/records.html, which the page of the domain and that of its link show."""
    records = list_records(domain)
    return {
        "domain": domain,
        "rows": [_row(record, domain) for record in records],
        "summary": summarize(domain, records),
        "warnings": [translate(warning["message"]) for warning in list_warnings(domain)],
        "provider": advise(domain),
    }


def records_refresh(domain: Domain, *, regions: tuple[str, ...]) -> Refresh:
    host, receiving = domain.links_host, domain.receiving
    statuses = (domain.status, host and host.status, receiving and receiving.status)
    return refresh_of(*statuses, domain.last_checked_at, regions=regions)


def summarize(domain: Domain, records: Sequence[DnsRecord]) -> Summary:
    """Return the most important fact about the records of a domain, with the next step."""
    open_records = [record for record in records if record.status != DomainStatus.VERIFIED]
    wrong = [record for record in open_records if _is_wrong(record)]
    if domain.last_checked_at is None:
        text = _("Publish these records where the DNS of %(name)s is managed. This page finds them by itself.")
        return Summary("neutral", "sync", text % {"name": domain.name})
    if shared := next((record.error for record in open_records if _code(record.error) in SHARED), None):
        return Summary("warning", "search_off", translate(shared))
    if wrong:
        text = _("Change the published value of %(records)s to the one below; everything else is checked by itself.")
        return Summary("warning", "edit", text % {"records": _names(wrong)})
    if domain.status == DomainStatus.VERIFIED:
        return _summarize_verified(domain, open_records)
    return _summarize_missing(records, open_records)


def _summarize_verified(domain: Domain, open_records: Sequence[DnsRecord]) -> Summary:
    if not open_records:
        text = _("All records are published. You can send from %(name)s.") % {"name": domain.name}
        return Summary("success", "task_alt", text)
    text = _("You can send from %(name)s. Recommended, and not published yet: %(records)s.")
    return Summary("success", "task_alt", text % {"name": domain.name, "records": _names(open_records)})


def _summarize_missing(records: Sequence[DnsRecord], open_records: Sequence[DnsRecord]) -> Summary:
    count = len(records) - len(open_records)
    if not count:
        text = _("None of the records is published yet. This page finds them by itself.")
        return Summary("neutral", "sync", text)
    text = ngettext(
        "%(count)s of %(all)s records is published. Still missing: %(records)s. This page finds them by itself.",
        "%(count)s of %(all)s records are published. Still missing: %(records)s. This page finds them by itself.",
        count,
    )
    values = {"count": count, "all": len(records), "records": _names(open_records)}
    return Summary("neutral", "sync", text % values)


def advise(domain: Domain) -> ProviderAdvice:
    """Return the advice for the provider of a domain; for an unknown one, the part that all have in common."""
    provider = PROVIDERS.get(domain.dns_provider)
    if provider is None:
        return ProviderAdvice("", "", [PROVIDER_NOTES["one_piece"]])
    return ProviderAdvice(provider.name, provider.url, [PROVIDER_NOTES[code] for code in provider.notes])


def zone_line(record: DnsRecord) -> str:
    values = {"CNAME": f"{record.value}.", "MX": f"{record.priority} {record.value}."}
    value = values.get(record.type, record.value)
    if record.type == "TXT":
        escaped = record.value.replace("\\", "\\\\").replace('"', '\\"')
        value = " ".join(f'"{escaped[at : at + TXT_BYTES]}"' for at in range(0, len(escaped), TXT_BYTES))
    return f"{record.fqdn}. {record.ttl} IN {record.type} {value}"


def is_published(record: DnsRecord) -> bool:
    """Return whether DNS has a record that importing the zone file would repeat or, as with DMARC, weaken.

    A CAA record is added to those of other authorities, which were found.
    """
    return record.type != "CAA" and (bool(record.found) or record.status == DomainStatus.VERIFIED)


def _row(record: DnsRecord, domain: Domain) -> RecordRow:
    return RecordRow(
        record,
        name=_name_in_zone(record, domain),
        purpose=PURPOSES[record.record],
        error="" if _code(record.error) in MISSING | SHARED else translate(record.error or ""),
        note=translate(record.note or ""),
        is_wrong=_is_wrong(record),
    )


def _name_in_zone(record: DnsRecord, domain: Domain) -> str:
    """Return a name relative to the zone; relative to the domain if the zone is unknown."""
    if not domain.zone_name:
        return record.name
    return "@" if record.fqdn == domain.zone_name else record.fqdn.removesuffix(f".{domain.zone_name}")


def _is_wrong(record: DnsRecord) -> bool:
    return bool(record.found and record.error)


def _code(error: str | None) -> str:
    return error.text_code if isinstance(error, CodedText) else ""


def _names(records: Sequence[DnsRecord]) -> str:
    """Return the names of records, each once."""
    return ", ".join(dict.fromkeys(record.record for record in records))
