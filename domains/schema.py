"""`/v1/domains` in the OpenAPI document."""

from typing import Any

from drf_spectacular.utils import extend_schema_field, extend_schema_view
from rest_framework import serializers

from api.schema import NOT_FOUND, TEXT, VALIDATION_ERROR, answer, known, page_of, paging
from api.schema_fields import refine
from domains import errors
from domains.models import Domain
from domains.serializers import DomainInput, DomainSerializer
from workspaces.schema import ANY, FULL, PLAN_LIMIT_REACHED, keyed_operation

DOMAIN_ALREADY_EXISTS = known(errors.DomainAlreadyExists, "demo.example is registered in this workspace already.")
DOMAIN_NOT_REGISTERED = known(
    errors.DomainNotRegistered,
    "demo.example is not registered in this workspace; register it first.",
    members={"domain": TEXT},
    example={"domain": "demo.example"},
)

refine(
    DomainInput,
    properties={"name": {"format": "idn-hostname", "description": "A domain such as `mail.example.com`."}},
)
refine(DomainSerializer, properties={"status": {"enum": Domain.Status.values}})


class RecordSerializer(serializers.Serializer[Any]):
    """One DNS record to publish."""

    record = serializers.ChoiceField(["DKIM", "SPF", "DMARC", "ReturnPath"], help_text="What it is for.")
    type = serializers.CharField(help_text="The type of DNS record.")
    name = serializers.CharField(help_text="Its name, relative to the domain.")
    fqdn = serializers.CharField(help_text="Its whole name.")
    value = serializers.CharField(help_text="What to publish.")
    ttl = serializers.IntegerField(help_text="Seconds.")
    priority = serializers.IntegerField(allow_null=True, help_text="Of an MX record.")
    locals()["required"] = serializers.BooleanField(help_text="Whether the domain is verified without it.")
    status = serializers.ChoiceField(Domain.Status.values)
    found = serializers.CharField(allow_null=True, help_text="What DNS answered.")
    error = serializers.CharField(allow_null=True, help_text="What to change.")


extend_schema_field(RecordSerializer(many=True))(DomainSerializer.get_records)

DOMAIN = {
    "id": "dom_0Uf7kXT4vB6nM8qWeRtYuI",
    "name": "demo.example",
    "status": "pending",
    "records": [
        {
            "record": "DKIM",
            "type": "TXT",
            "name": "pr1._domainkey",
            "fqdn": "pr1._domainkey.demo.example",
            "value": "v=DKIM1; k=rsa; p=MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A…",
            "ttl": 3600,
            "priority": None,
            "required": True,
            "status": "pending",
            "found": None,
            "error": None,
        }
    ],
    "createdAt": "2026-11-19T14:02:11.093Z",
    "verifiedAt": None,
    "lastCheckedAt": None,
}

domains_schema = extend_schema_view(
    list=keyed_operation(
        "listDomains",
        "List domains",
        "Returns the domains that are registered in this workspace, newest first.",
        scope=ANY,
        answers=[
            answer(
                200,
                page_of(DomainSerializer, name="DomainPage"),
                "A page of domains.",
                example={"data": [DOMAIN], "total": 1, "page": 1, "limit": 20},
            )
        ],
        problems=[VALIDATION_ERROR],
        parameters=paging(default=20),
    ),
    create=keyed_operation(
        "createDomain",
        "Register a domain",
        "Registers a domain to send from, and makes its DKIM key. The answer lists the DNS records to publish. The "
        "domain of an email's `from` must be registered exactly so: `example.com` does not stand for "
        "`mail.example.com`.",
        scope=FULL,
        body=DomainInput,
        bodies={"A domain": {"name": "demo.example"}},
        answers=[answer(201, DomainSerializer, "The domain is registered.", example=DOMAIN)],
        problems=[DOMAIN_ALREADY_EXISTS, PLAN_LIMIT_REACHED],
    ),
    retrieve=keyed_operation(
        "getDomain",
        "Get a domain",
        "Returns one domain with its DNS records.",
        scope=ANY,
        answers=[answer(200, DomainSerializer, "The domain.", example=DOMAIN)],
        problems=[NOT_FOUND],
    ),
)
