"""Serializers of sending domains."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.fields import empty

from api.fields import OptionField, StrictSerializer, TextField, UtcDateTimeField
from domains.models import Domain
from domains.names import InvalidDomainName, parse_registrable_name
from domains.records import DnsRecord, list_records, list_warnings


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
    tls = OptionField(
        Domain.TlsPolicy.values,
        help_text="`required`: emails of the domain leave only over TLS with a valid certificate. `opportunistic`: TLS "
        "is used where a host offers it.",
    )


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
    status = serializers.ChoiceField(Domain.DomainStatus.values)
    found = serializers.CharField(allow_null=True, help_text="Value found in DNS.")
    error = serializers.CharField(allow_null=True, help_text="Problem with the record, and how to fix it.")
    note = serializers.CharField(allow_null=True, help_text="Additional information.")


class DomainWarningSerializer(serializers.Serializer[Any]):
    """A problem that none of the listed records can fix."""

    code = serializers.ChoiceField(["null_mx"])
    message = serializers.CharField()


# Created once: instantiation copies every field, and rendering keeps no state in them.
RECORDS: Any = RecordSerializer(many=True)
WARNINGS: Any = DomainWarningSerializer(many=True)


class DomainSerializer(serializers.Serializer[Domain]):
    id = serializers.CharField()
    name = serializers.CharField()
    status = serializers.ChoiceField(Domain.DomainStatus.values)
    tls = serializers.ChoiceField(Domain.TlsPolicy.values)
    records = serializers.SerializerMethodField()
    warnings = serializers.SerializerMethodField()
    createdAt = UtcDateTimeField(source="created_at")  # noqa: N815
    verifiedAt = UtcDateTimeField(source="verified_at", allow_null=True)  # noqa: N815
    lastCheckedAt = UtcDateTimeField(source="last_checked_at", allow_null=True)  # noqa: N815

    @extend_schema_field(RECORDS)
    def get_records(self, domain: Domain) -> Any:
        return RECORDS.to_representation(list_records(domain))

    @extend_schema_field(WARNINGS)
    def get_warnings(self, domain: Domain) -> Any:
        return WARNINGS.to_representation(list_warnings(domain))
