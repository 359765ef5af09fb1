"""`/v1/domains` in the OpenAPI document."""

from typing import Any

from drf_spectacular.utils import extend_schema_field, extend_schema_view
from rest_framework import serializers

from api.schema import (
    NOT_FOUND,
    TEXT,
    VALIDATION_ERROR,
    DeletedSerializer,
    answer,
    array_of,
    known,
    object_of,
    page_of,
    paging,
)
from api.schema_fields import refine
from domains import errors
from domains.models import Domain
from domains.serializers import DomainInput, DomainSerializer
from workspaces.api.schema import ANY, FULL, PLAN_LIMIT_REACHED, keyed_operation

DOMAIN_ALREADY_EXISTS = known(errors.DomainAlreadyExists, "demo.example is registered in this workspace already.")
DOMAIN_NOT_REGISTERED = known(
    errors.DomainNotRegistered,
    "demo.example is not registered in this workspace; register it first.",
    members={"domain": TEXT},
    example={"domain": "demo.example"},
)
MISSING_RECORD = {
    "record": "DKIM",
    "type": "TXT",
    "fqdn": "pr-x7k2p9dm._domainkey.demo.example",
    "value": "v=DKIM1; k=rsa; p=MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A…",
    "status": "pending",
}
DOMAIN_NOT_VERIFIED = known(
    errors.DomainNotVerified,
    "demo.example is not verified in this workspace; publish its DNS records, then verify it.",
    members={"domain": TEXT, "missingRecords": array_of(object_of(dict.fromkeys(MISSING_RECORD, TEXT)))},
    example={"domain": "demo.example", "missingRecords": [MISSING_RECORD]},
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
    note = serializers.CharField(allow_null=True, help_text="What is worth knowing.")


class DomainWarningSerializer(serializers.Serializer[Any]):
    """Something that no record of this list can mend."""

    code = serializers.ChoiceField(["null_mx"])
    message = serializers.CharField()


extend_schema_field(RecordSerializer(many=True))(DomainSerializer.get_records)
extend_schema_field(DomainWarningSerializer(many=True))(DomainSerializer.get_warnings)

DOMAIN = {
    "id": "dom_0Uf7kXT4vB6nM8qWeRtYuI",
    "name": "demo.example",
    "status": "pending",
    "records": [
        {
            "record": "DKIM",
            "type": "TXT",
            "name": "pr-x7k2p9dm._domainkey",
            "fqdn": "pr-x7k2p9dm._domainkey.demo.example",
            "value": "v=DKIM1; k=rsa; p=MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A…",
            "ttl": 3600,
            "priority": None,
            "required": True,
            "status": "pending",
            "found": None,
            "error": None,
            "note": None,
        },
        {
            "record": "SPF",
            "type": "TXT",
            "name": "@",
            "fqdn": "demo.example",
            "value": "v=spf1 include:_spf.example.com ~all",
            "ttl": 3600,
            "priority": None,
            "required": True,
            "status": "failed",
            "found": "v=spf1 mx ~all",
            "error": "include:_spf.example.com is missing, or stands where it never counts; put the record shown in "
            "its place. With it the record takes 3 of 10 DNS look-ups.",
            "note": None,
        },
    ],
    "warnings": [],
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
    destroy=keyed_operation(
        "deleteDomain",
        "Delete a domain",
        "Deletes the domain with its DKIM keys. Registered again it gets new keys, and new records to publish.",
        scope=FULL,
        answers=[answer(200, DeletedSerializer, "The domain is gone.", example={"id": DOMAIN["id"], "deleted": True})],
        problems=[NOT_FOUND],
    ),
    verify=keyed_operation(
        "verifyDomain",
        "Verify a domain",
        "Asks the DNS for all records of the domain, within five seconds, and returns the whole domain. For each "
        "record `found` is what the DNS answered, `error` what to change; `value` is what to publish, given what is "
        "there: an SPF record of yours is kept, with ours put in. DKIM and SPF decide. A DNS server that does not "
        "answer changes nothing, and a verified domain fails only after its records were missing for 72 hours. "
        "Domains are checked again by themselves; this call need not be repeated. While the domain is being checked "
        "already, the answer is the last known state. The call takes no body.",
        scope=FULL,
        answers=[answer(200, DomainSerializer, "The domain, checked.", example=DOMAIN)],
        problems=[NOT_FOUND],
    ),
    rotate_dkim=keyed_operation(
        "rotateDkimKey",
        "Rotate the DKIM key",
        "Makes a new DKIM key with a selector of its own. Publish its record beside the old one: the old key signs "
        "until the new one is seen in the DNS. The old record is then to be kept for 14 days more, for mail that is "
        "still on its way, and leaves the list after them. Nothing is changed while a key is still to be seen. The "
        "call takes no body.",
        scope=FULL,
        answers=[answer(200, DomainSerializer, "The domain with its new record.", example=DOMAIN)],
        problems=[NOT_FOUND],
    ),
)
