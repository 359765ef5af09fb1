"""Resend's API: domains."""

from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from compat.drafts import read_choice
from compat.resend.resources import Resource
from compat.resend.views import ResendViewSet
from domains.models import Domain
from domains.records import DnsRecord, list_records
from domains.serializers import DomainInput
from domains.services import delete_domain, register_domain, set_tls_policy
from domains.verify import verify_domain
from lib.datetimes import format_datetime
from lib.ids import uuid_text

# https://resend.com/docs/api-reference/domains/create-domain
TLS = {"enforced": Domain.TlsPolicy.REQUIRED, "opportunistic": Domain.TlsPolicy.OPPORTUNISTIC}
# Clients expect one of Resend's regions.
REGION = "us-east-1"
# The records that Resend's clients know, by ours: at Resend the return path is a part of SPF.
# https://resend.com/docs/api-reference/domains/get-domain
RECORDS = {"DKIM": "DKIM", "SPF": "SPF", "ReturnPath": "SPF"}


def domain_item(domain: Domain) -> Resource:
    """Return a domain in a list."""
    return {
        "id": uuid_text(domain.id, prefix="dom_"),
        "name": domain.name,
        "status": domain.status if domain.last_checked_at else "not_started",
        "created_at": format_datetime(domain.created_at),
        "region": REGION,
        "capabilities": {"sending": "enabled", "receiving": "disabled"},
    }


def domain_resource(domain: Domain) -> Resource:
    records = [_record(record) for record in list_records(domain) if record.record in RECORDS]
    return {"object": "domain", **domain_item(domain), "records": records}


class ResendDomainViewSet(ResendViewSet[Domain]):
    queryset = Domain.objects.prefetch_related("dkim_keys")
    sending_actions = frozenset({"list", "retrieve"})
    object_name, id_prefix = "domain", "dom_"
    item, delete_object = staticmethod(domain_item), staticmethod(delete_domain)

    def create(self, request: Request) -> Response:
        tls = read_choice(self.body.get("tls"), TLS, field="tls")
        values = DomainInput().run_validation({"name": self.body.get("name")})
        domain = register_domain(self.workspace, name=values["name"])
        if tls:
            set_tls_policy(domain, tls=tls)
        return Response(domain_resource(domain), status=status.HTTP_201_CREATED)

    def retrieve(self, request: Request, pk: str) -> Response:
        return Response(domain_resource(self.find(pk)))

    def update(self, request: Request, pk: str) -> Response:
        domain, tls = self.find(pk), read_choice(self.body.get("tls"), TLS, field="tls")
        if tls:
            set_tls_policy(domain, tls=tls)
        return Response(self.reference(domain))

    def verify(self, request: Request, pk: str) -> Response:
        domain = self.find(pk)
        verify_domain(domain)
        return Response(self.reference(domain))


def _record(record: DnsRecord) -> Resource:
    """Return a DNS record; a priority only if it has one."""
    priority = {} if record.priority is None else {"priority": record.priority}
    return {
        "record": RECORDS[record.record],
        "name": record.name,
        "type": record.type,
        "ttl": str(record.ttl),
        "status": record.status,
        "value": record.value,
        **priority,
    }
