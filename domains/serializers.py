"""Serializers of sending domains."""

from typing import Any

from django.utils.translation import gettext_lazy
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.fields import empty

from core.api.fields import (
    NotEmpty,
    PatternField,
    RowInput,
    RowSerializer,
    StrictBooleanField,
    StrictSerializer,
    TextField,
)
from domains.models import Domain, ReceivingDomain, TrackingHost
from domains.names import InvalidDomainName, parse_registrable_name
from domains.records import DnsRecord, find_receiving_error, find_tracking_error, list_records, list_warnings

RECEIVING = "Whether email to addresses of the domain is received, by its record `Receiving`."
DISABLED = "disabled"
SUBDOMAIN = r"(?!-)[a-z0-9-]{1,63}(?<!-)"
# Names of other records of the domain.
RESERVED_SUBDOMAINS = ("bounce", "mta-sts")


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


class SubdomainField(PatternField):
    """The first label of a tracking host."""

    default_error_messages = {
        "invalid": gettext_lazy(
            "This must be one label of a host name, such as links: 1 to 63 characters of a-z, 0-9 and hyphens, the "
            "first and the last of them no hyphen."
        ),
        "reserved": gettext_lazy(
            "{name} is the name of another DNS record of the domain. Choose another one, such as links."
        ),
    }

    def __init__(self, **options: Any) -> None:
        super().__init__(rf"^{SUBDOMAIN}\Z", **options)

    def to_internal_value(self, data: Any) -> str:
        if data in RESERVED_SUBDOMAINS:
            self.fail("reserved", name=data)
        return super().to_internal_value(data)


class TrackingInput(StrictSerializer):
    subdomain = SubdomainField(help_text="The host is this label and the name of the domain, such as `links`.")


class DomainSettingsInput(RowInput):
    """The settings of a domain's owner."""

    tracking = TrackingInput(
        required=False,
        allow_null=True,
        help_text="The host of the links in emails of the domain; null for that of the service.",
    )
    receiving = StrictBooleanField(required=False, help_text=RECEIVING)

    class Meta:
        model = Domain
        fields = ("tls", "openTracking", "clickTracking", "tracking", "receiving")


class DomainChanges(NotEmpty, DomainSettingsInput):
    """Changes of a domain."""


class RecordSerializer(serializers.Serializer[DnsRecord]):
    """One DNS record to publish."""

    record = serializers.ChoiceField(
        ["DKIM", "SPF", "DMARC", "ReturnPath", "Tracking", "TrackingCAA", "Receiving", "TLSReports"],
        help_text="Purpose of the record.",
    )
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
        ["null_mx", "no_mail_host", "cname_at_domain", "use_subdomain"],
        help_text="The machine-readable code of the warning.",
    )
    message = serializers.CharField(help_text="An explanation for people.")


class TrackingSerializer(serializers.Serializer[TrackingHost]):
    """The host of a domain's links."""

    host = serializers.CharField(source="name", help_text="The name of the host.")
    status = serializers.ChoiceField(
        TrackingHost.HostStatus.values,
        help_text="New emails use the host while it is `active`. `pending`: its CNAME or its certificate is not there "
        "yet. `failed`: it was found to be wrong, or is no longer there; links in new emails lead to the service.",
    )
    error = serializers.SerializerMethodField(help_text="The reason why emails do not use the host, and how to fix it.")

    def get_error(self, host: TrackingHost) -> str | None:
        return find_tracking_error(host)


class ReceivingSerializer(serializers.Serializer[ReceivingDomain | None]):
    """Whether a domain receives email."""

    enabled = serializers.BooleanField(help_text=RECEIVING)
    status = serializers.ChoiceField(
        [DISABLED, *ReceivingDomain.ReceivingStatus.values],
        help_text="Email is accepted while it is `active`. `pending`: the MX record or the DKIM record is not there "
        "yet. `failed`: another mail host has precedence, another workspace receives, or the records were missing for "
        "72 hours.",
    )
    error = serializers.CharField(allow_null=True, help_text="The reason why no email arrives, and how to fix it.")

    def to_representation(self, instance: ReceivingDomain | None) -> dict[str, Any]:
        if instance is None:
            return {"enabled": False, "status": DISABLED, "error": None}
        return {"enabled": True, "status": instance.status, "error": find_receiving_error(instance)}


# Created once: instantiation copies every field, and rendering keeps no state in them.
RECORDS: Any = RecordSerializer(many=True)
WARNINGS: Any = DomainWarningSerializer(many=True)
HOST: Any = TrackingSerializer(allow_null=True)
RECEIVES: Any = ReceivingSerializer()


class DomainSerializer(RowSerializer[Domain]):
    id = serializers.CharField()
    name = serializers.CharField()
    tracking = serializers.SerializerMethodField(
        help_text="The host of the links in emails of the domain, in place of that of the service: tracked links, the "
        "pixel, and the unsubscribe link. null without one."
    )
    receiving = serializers.SerializerMethodField(help_text="Whether email to addresses of the domain is received.")
    records = serializers.SerializerMethodField(
        help_text="The DNS records to publish, and the results of the last check."
    )
    warnings = serializers.SerializerMethodField(help_text="Problems that none of the records can fix.")

    class Meta:
        model = Domain
        fields = (
            "id", "name", "status", "tls", "openTracking", "clickTracking", "tracking", "receiving", "records",
            "warnings", "createdAt", "verifiedAt", "lastCheckedAt",
        )  # fmt: skip

    @extend_schema_field(RECORDS)
    def get_records(self, domain: Domain) -> Any:
        return RECORDS.to_representation(list_records(domain))

    @extend_schema_field(HOST)
    def get_tracking(self, domain: Domain) -> Any:
        host = domain.links_host
        return host and HOST.to_representation(host)

    @extend_schema_field(RECEIVES)
    def get_receiving(self, domain: Domain) -> Any:
        return RECEIVES.to_representation(domain.receiving)

    @extend_schema_field(WARNINGS)
    def get_warnings(self, domain: Domain) -> Any:
        return WARNINGS.to_representation(list_warnings(domain))
