"""The DNS records that a domain's owner publishes, with what the last check saw of each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.conf import settings

from domains.lifecycle import OLD_KEY_KEPT
from domains.models import DkimKey, Domain
from domains.record_checks.dkim import key_value
from domains.record_checks.dmarc import dmarc_record
from domains.record_checks.results import RecordCheck, RecordStatus, from_json
from domains.record_checks.spf import parse_mechanisms, spf_record
from domains.signing_identities import return_path_name

TTL_SECONDS = 3600
STATUSES = {
    RecordStatus.RIGHT: Domain.Status.VERIFIED,
    RecordStatus.ABSENT: Domain.Status.PENDING,
    RecordStatus.WRONG: Domain.Status.FAILED,
    RecordStatus.UNKNOWN: Domain.Status.TEMPORARY_FAILURE,
}


@dataclass(frozen=True)
class Record:
    """One record to publish.

    name is relative to the domain, @ for the domain itself; fqdn is whole. found is what DNS answered, error what
    to change, note what is worth knowing. Whether the domain is verified without it says required.
    """

    record: str
    type: str
    name: str
    fqdn: str
    value: str
    ttl: int = TTL_SECONDS
    priority: int | None = None
    required: bool = True
    status: str = Domain.Status.PENDING.value
    found: str | None = None
    error: str | None = None
    note: str | None = None


def records_of(domain: Domain) -> list[Record]:
    """Return the records, DKIM keys first, the oldest of them first. Reads the keys, and nothing else."""
    sight = from_json(domain.findings)
    keys = sorted(domain.dkim_keys.all(), key=lambda key: (key.created_at, key.id))
    dkim = [_dkim(domain, key, signing_key(keys)) for key in keys]
    records = [*dkim, _spf(domain), _dmarc(domain), _return_path(domain)]
    if sight is None:
        return records
    findings = [sight.keys.get(key.selector) for key in keys] + [sight.spf, sight.dmarc, sight.return_path]
    return [_checked(record, finding, domain) for record, finding in zip(records, findings, strict=True)]


def missing_records(domain: Domain) -> list[Record]:
    """Return the records that keep a domain from being verified."""
    return [one for one in records_of(domain) if one.required and one.status != Domain.Status.VERIFIED]


def warnings_of(domain: Domain) -> list[dict[str, str]]:
    """Return what the last check saw that no record of ours can mend."""
    sight = from_json(domain.findings)
    return [{"code": "null_mx", "message": sight.mail.error}] if sight and sight.mail.error else []


def signing_key(keys: Sequence[DkimKey]) -> DkimKey:
    """Return which of a domain's keys signs, as domains.signing_identities chooses. keys: oldest first."""
    seen = [key for key in keys if key.seen_at]
    return seen[-1] if seen else keys[0]


def _checked(record: Record, finding: RecordCheck | None, domain: Domain) -> Record:
    """Return a record with what was found of it."""
    if finding is None:
        return record
    status = STATUSES[finding.verdict]
    if status is Domain.Status.PENDING and record.required and domain.status in {"failed", "temporary_failure"}:
        status = Domain.Status.FAILED
    notes = [note for note in (record.note, finding.note) if note]
    return replace(
        record,
        value=finding.value or record.value,
        status=status.value,
        found=finding.found,
        error=finding.error,
        note=" ".join(notes) or None,
    )


def _dkim(domain: Domain, key: DkimKey, signing: DkimKey) -> Record:
    name = f"{key.selector}._domainkey"
    return Record(
        record="DKIM",
        type="TXT",
        name=name,
        fqdn=f"{name}.{domain.name}",
        value=key_value(key.public_key),
        required=key == signing,
        note=_rotation(key, signing),
    )


def _rotation(key: DkimKey, signing: DkimKey) -> str | None:
    if key.retired_at:
        day = f"{key.retired_at + OLD_KEY_KEPT:%Y-%m-%d}"
        return f"Keep this record until {day}: mail that it has signed may still be on its way. Then delete it."
    if key != signing:
        return f"Publish this one, too, and keep the other: {signing.selector} signs until this one is seen."
    return None


def _spf(domain: Domain) -> Record:
    value = spf_record(parse_mechanisms(settings.SPF_MECHANISMS))
    return Record(record="SPF", type="TXT", name="@", fqdn=domain.name, value=value)


def _dmarc(domain: Domain) -> Record:
    return Record(
        record="DMARC",
        type="TXT",
        name="_dmarc",
        fqdn=f"_dmarc.{domain.name}",
        value=dmarc_record(settings.DMARC_RUA),
        required=False,
    )


def _return_path(domain: Domain) -> Record:
    fqdn = return_path_name(domain.name)
    name = fqdn.removesuffix(f".{domain.name}")
    value = settings.RETURN_PATH_DOMAIN
    return Record(record="ReturnPath", type="CNAME", name=name, fqdn=fqdn, value=value, required=False)
