"""OpenAPI schema of `/v1/domains`."""

from typing import Any

from drf_spectacular.utils import extend_schema_field, extend_schema_view
from rest_framework import serializers

from api.schema import (
    NOT_FOUND,
    TEXT,
    VALIDATION_ERROR,
    DeletedSerializer,
    array_of,
    describe_problem,
    object_of,
    page_of,
    paging,
    response,
)
from api.schema_fields import refine_schema
from domains import errors
from domains.models import Domain
from domains.serializers import DomainInput, DomainSerializer
from workspaces.api.schema import ANY, FULL, PLAN_LIMIT_REACHED, keyed_operation

DOMAIN_ALREADY_EXISTS = describe_problem(
    errors.DomainAlreadyExists, "demo.example is already registered in this workspace."
)
DOMAIN_NOT_REGISTERED = describe_problem(
    errors.DomainNotRegistered,
    "demo.example is not registered in this workspace. Register it first.",
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
DOMAIN_NOT_VERIFIED = describe_problem(
    errors.DomainNotVerified,
    "demo.example is not verified in this workspace. Publish its DNS records, then verify it.",
    members={"domain": TEXT, "missingRecords": array_of(object_of(dict.fromkeys(MISSING_RECORD, TEXT)))},
    example={"domain": "demo.example", "missingRecords": [MISSING_RECORD]},
)

refine_schema(
    DomainInput,
    properties={"name": {"format": "idn-hostname", "description": "A domain such as `mail.example.com`."}},
)
refine_schema(DomainSerializer, properties={"status": {"enum": Domain.DomainStatus.values}})


class RecordSerializer(serializers.Serializer[Any]):
    """One DNS record to publish."""

    record = serializers.ChoiceField(["DKIM", "SPF", "DMARC", "ReturnPath"], help_text="Purpose of the record.")
    type = serializers.CharField(help_text="DNS record type.")
    name = serializers.CharField(help_text="Record name relative to the domain; `@` for the domain itself.")
    fqdn = serializers.CharField(help_text="Full record name.")
    value = serializers.CharField(help_text="Value to publish.")
    ttl = serializers.IntegerField(help_text="Time to live in seconds.")
    priority = serializers.IntegerField(allow_null=True, help_text="Priority of an MX record.")
    locals()["required"] = serializers.BooleanField(help_text="Whether this record is required for verification.")
    status = serializers.ChoiceField(Domain.DomainStatus.values)
    found = serializers.CharField(allow_null=True, help_text="Value found in DNS.")
    error = serializers.CharField(allow_null=True, help_text="Problem with the record, and how to fix it.")
    note = serializers.CharField(allow_null=True, help_text="Additional information.")


class DomainWarningSerializer(serializers.Serializer[Any]):
    """A problem that none of the listed records can fix."""

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
            "error": "include:_spf.example.com is missing or has no effect in its position. Replace the record with "
            "the one shown here. It will use 3 of the 10 DNS lookups.",
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
        "Returns the domains registered in this workspace, newest first.",
        scope=ANY,
        responses=[
            response(
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
        "Registers a domain to send from, and creates its DKIM key. The response lists the DNS records to publish. "
        "The domain of an email's `from` must be registered exactly: registering `example.com` does not allow "
        "`mail.example.com`.",
        scope=FULL,
        body=DomainInput,
        bodies={"A domain": {"name": "demo.example"}},
        responses=[response(201, DomainSerializer, "The domain is registered.", example=DOMAIN)],
        problems=[DOMAIN_ALREADY_EXISTS, PLAN_LIMIT_REACHED],
    ),
    retrieve=keyed_operation(
        "getDomain",
        "Get a domain",
        "Returns one domain with its DNS records.",
        scope=ANY,
        responses=[response(200, DomainSerializer, "The domain.", example=DOMAIN)],
        problems=[NOT_FOUND],
    ),
    destroy=keyed_operation(
        "deleteDomain",
        "Delete a domain",
        "Deletes the domain and its DKIM keys. If it is registered again, it gets new keys and new records to publish.",
        scope=FULL,
        responses=[
            response(200, DeletedSerializer, "The domain is deleted.", example={"id": DOMAIN["id"], "deleted": True})
        ],
        problems=[NOT_FOUND],
    ),
    verify=keyed_operation(
        "verifyDomain",
        "Verify a domain",
        "Looks up all DNS records of the domain, within five seconds, and returns the domain. For each record, "
        "`found` is the value in DNS, `error` explains the problem and its fix, and `value` is the value to publish: "
        "an existing SPF record is kept and extended. DKIM and SPF are required. A failed DNS lookup does not change "
        "the status, and a verified domain fails only after its records have been missing for 72 hours. Domains are "
        "checked periodically, so there is no need to repeat this call. If a check is already running, the response is "
        "the last known state. The request has no body.",
        scope=FULL,
        responses=[response(200, DomainSerializer, "The domain with the results of the check.", example=DOMAIN)],
        problems=[NOT_FOUND],
    ),
    rotate_dkim=keyed_operation(
        "rotateDkimKey",
        "Rotate the DKIM key",
        "Creates a new DKIM key with a new selector. Publish its record in addition to the existing one: the old key "
        "signs until the new one is found in DNS. Then keep the old record for 14 more days, for messages still in "
        "transit; it is removed from the list afterwards. If a new key is not published yet, the call changes "
        "nothing. The request has no body.",
        scope=FULL,
        responses=[response(200, DomainSerializer, "The domain, including the new record.", example=DOMAIN)],
        problems=[NOT_FOUND],
    ),
)
