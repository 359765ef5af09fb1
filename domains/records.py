"""DNS records to publish for a domain, each with the result of the last check."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.conf import settings

from core.lib.coded_texts import CodedText, join_sentences
from domains.lifecycle import OLD_KEY_RETENTION
from domains.models import DkimKey, Domain, DomainReport, ReceivingDomain, TrackingHost
from domains.receiving.services import mail_hosts
from domains.record_checks.dkim import build_dkim_record
from domains.record_checks.dmarc import add_report_address, build_dmarc_record
from domains.record_checks.receiving import TLS_REPORTING, TLS_VERSION
from domains.record_checks.results import (
    HostCheck,
    ReceivingCheck,
    RecordCheck,
    RecordStatus,
    VerificationResult,
    from_json,
)
from domains.record_checks.spf_syntax import build_spf_record, parse_mechanisms
from domains.reports.addresses import has_report_addresses, report_address, tls_report_url
from domains.signing_identities import return_path_name

TTL_SECONDS = 3600
MX_PREFERENCE = 10
STATUS_BY_CHECK = {
    RecordStatus.VALID: Domain.DomainStatus.VERIFIED,
    RecordStatus.MISSING: Domain.DomainStatus.PENDING,
    RecordStatus.INVALID: Domain.DomainStatus.FAILED,
    RecordStatus.UNKNOWN: Domain.DomainStatus.TEMPORARY_FAILURE,
}


@dataclass(frozen=True)
class DnsRecord:
    """One record to publish.

    name is relative to the domain, @ for the domain itself; fqdn is the full name. found is the DNS answer, error the
    problem and its fix, note additional information. required: the domain is not verified without this record.
    """

    record: str
    type: str
    name: str
    fqdn: str
    value: str
    ttl: int = TTL_SECONDS
    priority: int | None = None
    required: bool = True
    status: str = Domain.DomainStatus.PENDING.value
    found: str | None = None
    error: str | None = None
    note: str | None = None


def list_records(domain: Domain) -> list[DnsRecord]:
    """Return the records, starting with the DKIM keys, oldest first. Queries only keys, tracking host and receiving."""
    return [*_domain_records(domain), *_tracking_records(domain), *_receiving_records(domain)]


def list_missing_records(domain: Domain) -> list[DnsRecord]:
    """Return the required records that are not verified."""
    return [
        record for record in list_records(domain) if record.required and record.status != Domain.DomainStatus.VERIFIED
    ]


def find_tracking_error(host: TrackingHost) -> str | None:
    """Return the reason why emails do not use a host, as the last check found it."""
    check = _host_check(host)
    return check.decisive.error if check else None


def find_receiving_error(receiving: ReceivingDomain) -> str | None:
    """Return the reason why the email of a domain does not arrive, as the last check found it."""
    check = _receiving_check(receiving)
    return check.decisive.error if check else None


def _domain_records(domain: Domain) -> list[DnsRecord]:
    result = from_json(VerificationResult, domain.findings, domain.finding_codes)
    keys = sorted(domain.dkim_keys.all(), key=lambda key: (key.created_at, key.id))
    dkim = [_dkim(domain, key, select_signing_key(keys)) for key in keys]
    records = [*dkim, _spf(domain), _dmarc(domain), _return_path(domain)]
    if result is not None:
        checks = [result.keys.get(key.selector) for key in keys] + [result.spf, result.dmarc, result.return_path]
        records = [_with_check(record, check, domain) for record, check in zip(records, checks, strict=True)]
    return [_with_reports(record, domain) if record.record == "DMARC" else record for record in records]


def list_warnings(domain: Domain) -> list[dict[str, str]]:
    """Return the problems found by the last check that no record of the list can fix."""
    result = from_json(VerificationResult, domain.findings, domain.finding_codes)
    receiving = _receiving_check(domain.receiving) if domain.receiving else None
    # The MX of a receiving domain has a record of its own.
    error = result.mail.error if result and not receiving else None
    errors = [error, receiving.advice.error if receiving else None]
    return [{"code": _warning_code(error), "message": error} for error in errors if error]


def _warning_code(error: str) -> str:
    # A message without a code was written by an earlier version.
    return error.text_code.removeprefix("domains.") if isinstance(error, CodedText) else "null_mx"


def select_signing_key(keys: Sequence[DkimKey]) -> DkimKey:
    """Return the key that signs, by the rule of domains.signing_identities. keys: oldest first."""
    seen = [key for key in keys if key.seen_at]
    return seen[-1] if seen else keys[0]


def _with_check(record: DnsRecord, check: RecordCheck | None, domain: Domain) -> DnsRecord:
    """Return a record with the result of its check."""
    if check is None:
        return record
    status = STATUS_BY_CHECK[check.status]
    if status is Domain.DomainStatus.PENDING and record.required and domain.status in {"failed", "temporary_failure"}:
        status = Domain.DomainStatus.FAILED
    return replace(
        record,
        value=check.value or record.value,
        status=status.value,
        found=check.found,
        error=check.error,
        note=join_sentences(record.note or "", check.note or "") or None,
    )


def _dkim(domain: Domain, key: DkimKey, signing: DkimKey) -> DnsRecord:
    name = f"{key.selector}._domainkey"
    return DnsRecord(
        record="DKIM",
        type="TXT",
        name=name,
        fqdn=f"{name}.{domain.name}",
        value=build_dkim_record(key.public_key),
        required=key == signing,
        note=_rotation_note(key, signing),
    )


def _rotation_note(key: DkimKey, signing: DkimKey) -> str | None:
    if key.retired_at:
        day = f"{key.retired_at + OLD_KEY_RETENTION:%Y-%m-%d}"
        return CodedText("domains.old_key", day=day)
    if key != signing:
        return CodedText("domains.new_key", key=signing.selector)
    return None


def _spf(domain: Domain) -> DnsRecord:
    value = build_spf_record(parse_mechanisms(settings.SPF_MECHANISMS))
    return DnsRecord(record="SPF", type="TXT", name="@", fqdn=domain.name, value=value)


def _dmarc(domain: Domain) -> DnsRecord:
    return DnsRecord(
        record="DMARC",
        type="TXT",
        name="_dmarc",
        fqdn=f"_dmarc.{domain.name}",
        value=build_dmarc_record(settings.DMARC_RUA),
        required=False,
    )


def _with_reports(record: DnsRecord, domain: Domain) -> DnsRecord:
    """Return the record of a policy, also of one that is published already, with the address for reports.

    Receivers send to two addresses at least (RFC 9990, section 3.5).
    """
    if not has_report_addresses():
        return record
    address = report_address(domain, DomainReport.AggregateKind.DMARC)
    return replace(record, value=add_report_address(record.value, address))


def _return_path(domain: Domain) -> DnsRecord:
    fqdn = return_path_name(domain.name)
    name = fqdn.removesuffix(f".{domain.name}")
    value = settings.RETURN_PATH_DOMAIN
    return DnsRecord(record="ReturnPath", type="CNAME", name=name, fqdn=fqdn, value=value, required=False)


def _host_check(host: TrackingHost) -> HostCheck | None:
    return from_json(HostCheck, host.findings, host.finding_codes)


def _tracking_records(domain: Domain) -> list[DnsRecord]:
    """Return the CNAME of the tracking host, and the CAA record without which it gets no certificate."""
    host = domain.links_host
    if host is None:
        return []
    name = _relative_name(host.name, domain)
    record = DnsRecord("Tracking", "CNAME", name, host.name, settings.TRACKING_HOST, required=False)
    check = _host_check(host)
    if check is None:
        return [record]
    records = [_with_check(record, check.name, domain)]
    if check.authority:
        fqdn, value = check.authority_name, f'0 issue "{settings.TRACKING_CA}"'
        caa = DnsRecord("TrackingCAA", "CAA", _relative_name(fqdn, domain), fqdn, value, required=False)
        records.append(_with_check(caa, check.authority, domain))
    return records


def _receiving_check(receiving: ReceivingDomain) -> ReceivingCheck | None:
    return from_json(ReceivingCheck, receiving.findings, receiving.finding_codes)


def _receiving_records(domain: Domain) -> list[DnsRecord]:
    """Return an MX record for each mail host of this service, and that of TLS reports, if the domain receives."""
    if domain.receiving is None:
        return []
    check = _receiving_check(domain.receiving)
    records = [
        DnsRecord("Receiving", "MX", "@", domain.name, host, priority=MX_PREFERENCE, required=False)
        for host in mail_hosts()
    ]
    checked = [_with_check(record, check.mx if check else None, domain) for record in records]
    return [*checked, _tls_reports(domain, domain.receiving)] if has_report_addresses() else checked


def _tls_reports(domain: Domain, receiving: ReceivingDomain) -> DnsRecord:
    """Return the record that asks for TLS reports. A policy without our address stays, and is extended."""
    address, found = report_address(domain, DomainReport.AggregateKind.TLS), receiving.tls_reporting
    targets = f"mailto:{address},{tls_report_url(domain)}"
    is_published = bool(found) and (address in str(found).lower() or tls_report_url(domain) in str(found))
    is_extended = bool(found) and not is_published
    return DnsRecord(
        record="TLSReports",
        type="TXT",
        name=TLS_REPORTING,
        fqdn=f"{TLS_REPORTING}.{domain.name}",
        value=f"{str(found).rstrip('; ')},mailto:{address}" if is_extended else f"{TLS_VERSION}; rua={targets}",
        required=False,
        status=(Domain.DomainStatus.VERIFIED if is_published else Domain.DomainStatus.PENDING).value,
        found=found or None,
    )


def _relative_name(fqdn: str, domain: Domain) -> str:
    """Return a name relative to the domain; one above it stays complete."""
    return "@" if fqdn == domain.name else fqdn.removesuffix(f".{domain.name}")
