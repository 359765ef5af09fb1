"""Serializers of sending domains."""

from dataclasses import asdict
from typing import Any

from rest_framework import serializers

from api.fields import StrictSerializer, TextField, UtcDateTimeField
from domains.models import Domain
from domains.names import InvalidDomainName, parse_registrable_name
from domains.records import list_records, list_warnings


class DomainInput(StrictSerializer):
    name = TextField(max_length=253)

    def validate_name(self, name: str) -> str:
        try:
            return parse_registrable_name(name)
        except InvalidDomainName as error:
            raise serializers.ValidationError(str(error), code="invalid_domain") from error


class DomainSerializer(serializers.Serializer[Domain]):
    id = serializers.CharField()
    name = serializers.CharField()
    status = serializers.CharField()
    records = serializers.SerializerMethodField()
    warnings = serializers.SerializerMethodField()
    createdAt = UtcDateTimeField(source="created_at")  # noqa: N815
    verifiedAt = UtcDateTimeField(source="verified_at", allow_null=True)  # noqa: N815
    lastCheckedAt = UtcDateTimeField(source="last_checked_at", allow_null=True)  # noqa: N815

    def get_records(self, domain: Domain) -> list[dict[str, Any]]:
        return [asdict(record) for record in list_records(domain)]

    def get_warnings(self, domain: Domain) -> list[dict[str, str]]:
        return list_warnings(domain)
