"""Resend's API: domains."""

from collections.abc import Mapping
from typing import Any

from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from core.lib.datetimes import format_datetime
from core.lib.ids import uuid_text
from domains.check_queue.verify import verify_domain
from domains.models import Domain
from domains.records import DnsRecord, list_records
from domains.serializers import DomainInput, DomainSettingsInput
from domains.services import change_domain, delete_domain, register_domain
from interfaces.compat.drafts import as_object, read_choice, rename_fields
from interfaces.compat.errors import invalid_field
from interfaces.compat.resend.resources import Resource
from interfaces.compat.resend.views import ResendViewSet

# https://resend.com/docs/api-reference/domains/create-domain
TLS = {"enforced": Domain.TlsPolicy.REQUIRED, "opportunistic": Domain.TlsPolicy.OPPORTUNISTIC}
# Clients expect one of Resend's regions.
REGION = "us-east-1"
# The records that Resend's clients know, by ours: at Resend the return path is a part of SPF.
# https://resend.com/docs/api-reference/domains/get-domain
RECORDS = {
    "DKIM": "DKIM",
    "SPF": "SPF",
    "ReturnPath": "SPF",
    "Tracking": "Tracking",
    "TrackingCAA": "TrackingCAA",
    "Receiving": "Receiving",
}
# Their names are complete.
COMPLETE_NAMES = frozenset({"Tracking", "TrackingCAA"})
# Fields with the values of ours. https://resend.com/docs/api-reference/domains/update-domain
CAPABILITIES = {"enabled": True, "disabled": False}
SWITCHES = {"open_tracking": "openTracking", "click_tracking": "clickTracking"}


def domain_item(domain: Domain) -> Resource:
    """Return a domain in a list."""
    return {
        "id": uuid_text(domain.id, prefix="dom_"),
        "name": domain.name,
        "status": domain.status if domain.last_checked_at else "not_started",
        "created_at": format_datetime(domain.created_at),
        "region": REGION,
        "capabilities": {"sending": "enabled", "receiving": "enabled" if domain.receiving else "disabled"},
    }


def domain_resource(domain: Domain) -> Resource:
    records = [_record(record) for record in list_records(domain) if record.record in RECORDS]
    host = domain.links_host
    return {
        "object": "domain",
        **domain_item(domain),
        "open_tracking": domain.open_tracking,
        "click_tracking": domain.click_tracking,
        "tracking_subdomain": host and host.name.partition(".")[0],
        "records": records,
    }


class ResendDomainViewSet(ResendViewSet[Domain]):
    queryset = Domain.objects.select_related("tracking_host", "receiving_domain").prefetch_related("dkim_keys")
    sending_actions = frozenset({"list", "retrieve"})
    object_name, id_prefix = "domain", "dom_"
    item, delete_object = staticmethod(domain_item), staticmethod(delete_domain)

    def create(self, request: Request) -> Response:
        changes = _read_changes(self.body)
        values = DomainInput().run_validation({"name": self.body.get("name")})
        domain = register_domain(self.workspace, name=values["name"], changes=changes)
        return Response(domain_resource(self.get_queryset().get(id=domain.id)), status=status.HTTP_201_CREATED)

    def retrieve(self, request: Request, pk: str) -> Response:
        return Response(domain_resource(self.find(pk)))

    def update(self, request: Request, pk: str) -> Response:
        domain = self.find(pk)
        change_domain(domain, _read_changes(self.body))
        return Response(self.reference(domain))

    def verify(self, request: Request, pk: str) -> Response:
        domain = self.find(pk)
        verify_domain(domain)
        return Response(self.reference(domain))


def _read_changes(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a domain that a request gives. Raises ValidationError, InvalidFields."""
    fields = rename_fields(body, SWITCHES)
    if tls := read_choice(body.get("tls"), TLS, field="tls"):
        fields["tls"] = tls.value
    if "tracking_subdomain" in body:
        subdomain = body["tracking_subdomain"]
        fields["tracking"] = None if subdomain is None else {"subdomain": subdomain}
    capabilities = as_object(body.get("capabilities"), "capabilities")
    if read_choice(capabilities.get("sending"), CAPABILITIES, field="capabilities") is False:
        raise invalid_field("capabilities", "A domain can always send. Delete it to stop sending.")
    receiving = read_choice(capabilities.get("receiving"), CAPABILITIES, field="capabilities")
    fields |= {} if receiving is None else {"receiving": receiving}
    changes: dict[str, Any] = DomainSettingsInput().run_validation(fields)
    return changes


def _record(record: DnsRecord) -> Resource:
    """Return a DNS record; a priority only if it has one."""
    priority = {} if record.priority is None else {"priority": record.priority}
    return {
        "record": RECORDS[record.record],
        "name": record.fqdn if record.record in COMPLETE_NAMES else record.name,
        "type": record.type,
        "ttl": str(record.ttl),
        "status": record.status,
        "value": record.value,
        **priority,
    }
