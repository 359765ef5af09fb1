"""Serializers of sending domains."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.fields import empty

from api.fields import (
    AttributesSerializer,
    OptionField,
    StrictSerializer,
    TextField,
    UtcDateTimeField,
)
from domains.models import Domain
from domains.names import InvalidDomainName, parse_registrable_name
from domains.records import DnsRecord, list_records, list_warnings

TLS = (
    "`required`: emails of the domain leave only over TLS with a valid certificate. `opportunistic`: TLS is used where "
    "a host offers it."
)


@extend_schema_field({"type": "string", "format": "idn-hostname"})
class DomainNameField(TextField):
    """The name of a domain that can be registered, as an A-label."""

    def run_validation(self, data: Any = empty) -> Any:
        name = super().run_validation(data)
        try:
            return parse_registrable_name(name)
        except InvalidDomainName as error:
            raise serializers.ValidationError(str(error), code="invalid_domain") from error


class DomainInput(StrictSerializer):
    name = DomainNameField(max_length=253, help_text="A domain such as `mail.example.com`.")


class DomainChanges(StrictSerializer):
    tls = OptionField(Domain.TlsPolicy.values, help_text=TLS)


class RecordSerializer(serializers.Serializer[DnsRecord]):
    """One DNS record to publish."""

    record = serializers.ChoiceField(["DKIM", "SPF", "DMARC", "ReturnPath"], help_text="Purpose of the record.")
    type = serializers.CharField(help_text="DNS record type.")
    name = serializers.CharField(help_text="Record name relative to the domain; `@` for the domain itself.")
    fqdn = serializers.CharField(help_text="Full record name.")
    value = serializers.CharField(help_text="Value to publish.")
    ttl = serializers.IntegerField(help_text="Time to live in seconds.")
    priority = serializers.IntegerField(allow_null=True, help_text="Priority of an MX record.")
    locals()["required"] = serializers.BooleanField(help_text="Whether this record is required for verification.")
    status = serializers.ChoiceField(
        Domain.DomainStatus.values, help_text="The result of the last check of this record."
    )
    found = serializers.CharField(allow_null=True, help_text="Value found in DNS.")
    error = serializers.CharField(allow_null=True, help_text="Problem with the record, and how to fix it.")
    note = serializers.CharField(allow_null=True, help_text="Additional information.")


class DomainWarningSerializer(serializers.Serializer[Any]):
    """A problem that none of the listed records can fix."""

    code = serializers.ChoiceField(
        ["null_mx", "no_mail_host", "cname_at_domain"], help_text="The machine-readable code of the warning."
    )
    message = serializers.CharField(help_text="An explanation for people.")


# Created once: instantiation copies every field, and rendering keeps no state in them.
RECORDS: Any = RecordSerializer(many=True)
WARNINGS: Any = DomainWarningSerializer(many=True)


class DomainSerializer(AttributesSerializer[Domain]):
    id = serializers.CharField()
    name = serializers.CharField()
    status = serializers.ChoiceField(
        Domain.DomainStatus.values,
        help_text="`verified` once DKIM and SPF are found; `temporary_failure` if DNS did not answer.",
    )
    tls = serializers.ChoiceField(Domain.TlsPolicy.values, help_text=TLS)
    records = serializers.SerializerMethodField(
        help_text="The DNS records to publish, and the results of the last check."
    )
    warnings = serializers.SerializerMethodField(help_text="Problems that none of the records can fix.")
    createdAt = UtcDateTimeField()
    verifiedAt = UtcDateTimeField(allow_null=True, help_text="The time of the verification; null before it.")
    lastCheckedAt = UtcDateTimeField(allow_null=True, help_text="The time of the last check; null before the first.")

    @extend_schema_field(RECORDS)
    def get_records(self, domain: Domain) -> Any:
        return RECORDS.to_representation(list_records(domain))

    @extend_schema_field(WARNINGS)
    def get_warnings(self, domain: Domain) -> Any:
        return WARNINGS.to_representation(list_warnings(domain))
