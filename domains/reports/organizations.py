"""Mail organizations that send reports: the receivers of the table, as those that accepted messages are counted by."""

from django.conf import settings

from core.counters.acceptances import counted_organization
from domains.reports.reading.results import ReadReport


def organization_of(read: ReadReport) -> str:
    """Return the key of the organization that a report is from (core.delivery.receivers)."""
    receiver = settings.RECEIVERS.receiver_of_report(read.reporter, domain=read.reporter_domain)
    return counted_organization(receiver.key)


def organization_name(key: str) -> str:
    """Return the name of an organization for people."""
    return str(settings.RECEIVERS.receiver_of_key(key).name)
