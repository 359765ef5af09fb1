"""The DNS records that a domain's owner publishes."""

from dataclasses import dataclass

from domains.models import DkimKey, Domain

TTL_SECONDS = 3600


@dataclass(frozen=True)
class Record:
    """One record to publish: name is relative to the domain, fqdn is whole; found is what DNS answered."""

    record: str
    type: str
    name: str
    fqdn: str
    value: str
    ttl: int = TTL_SECONDS
    priority: int | None = None
    required: bool = True
    status: str = "pending"
    found: str | None = None
    error: str | None = None


def records_of(domain: Domain) -> list[Record]:
    return [_dkim(domain, key) for key in domain.dkim_keys.all()]


def _dkim(domain: Domain, key: DkimKey) -> Record:
    name = f"{key.selector}._domainkey"
    value = f"v=DKIM1; k=rsa; p={key.public_key}"
    return Record(record="DKIM", type="TXT", name=name, fqdn=f"{name}.{domain.name}", value=value)
