"""Domains on the wire."""

from dataclasses import asdict
from typing import Any

from rest_framework import serializers

from api.fields import StrictSerializer, TextField, WireTimeField
from domains.models import Domain
from domains.names import InvalidDomainName, registrable_name
from domains.records import records_of, warnings_of


class DomainInput(StrictSerializer):
    name = TextField(max_length=253)

    def validate_name(self, name: str) -> str:
        try:
            return registrable_name(name)
        except InvalidDomainName as error:
            raise serializers.ValidationError(str(error), code="invalid_domain") from error


class DomainSerializer(serializers.Serializer[Domain]):
    id = serializers.CharField()
    name = serializers.CharField()
    status = serializers.CharField()
    records = serializers.SerializerMethodField()
    warnings = serializers.SerializerMethodField()
    createdAt = WireTimeField(source="created_at")  # noqa: N815
    verifiedAt = WireTimeField(source="verified_at", allow_null=True)  # noqa: N815
    lastCheckedAt = WireTimeField(source="last_checked_at", allow_null=True)  # noqa: N815

    def get_records(self, domain: Domain) -> list[dict[str, Any]]:
        return [asdict(record) for record in records_of(domain)]

    def get_warnings(self, domain: Domain) -> list[dict[str, str]]:
        return warnings_of(domain)
