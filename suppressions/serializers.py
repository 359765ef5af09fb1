"""Serializers of suppressions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rest_framework import serializers

from core.api.fields import (
    OPTIONAL,
    DeletedSerializer,
    EntriesField,
    FieldErrors,
    RecipientField,
    RowSerializer,
    StrictSerializer,
    TextField,
)
from core.api.schema_fields import refine_schema
from suppressions.models import Suppression

MAX_ADDRESSES = 1000


@dataclass(frozen=True)
class SuppressionRequest:
    """The addresses to suppress.

    is_list: whether the response is a list.
    stream: empty for all streams.
    """

    addresses: tuple[str, ...]
    is_list: bool
    stream: str


class SuppressionInput(StrictSerializer):
    """`email` or `emails`, parsed into a SuppressionRequest. Display names are dropped."""

    email = RecipientField(required=False)
    emails = EntriesField(
        child=RecipientField(),
        required=False,
        allow_empty=False,
        max_length=MAX_ADDRESSES,
        help_text="Up to 1,000 addresses, in place of `email`.",
    )
    stream = TextField(
        **OPTIONAL,
        max_length=40,
        help_text="The id of the only stream to block; without it, all streams of the workspace.",
    )

    def combination_errors(self, data: Mapping[str, Any]) -> FieldErrors:
        if "email" in data and "emails" in data:
            return {"emails": [serializers.ErrorDetail("Provide email or emails, not both.", code="invalid")]}
        if "email" not in data and "emails" not in data:
            message = "Provide email, or emails for several addresses."
            return {"email": [serializers.ErrorDetail(message, code="required")]}
        return {}

    def validate(self, attrs: dict[str, Any]) -> Any:
        addresses = attrs.get("emails") or [attrs["email"]]
        specs = tuple(address.spec for address in addresses)
        return SuppressionRequest(specs, is_list="emails" in attrs, stream=attrs.get("stream") or "")


# Exactly one of the two fields.
refine_schema(
    SuppressionInput,
    properties={"emails": {"minItems": 1, "maxItems": MAX_ADDRESSES}},
    **{
        "if": {"required": ["email"]},
        "then": {"not": {"required": ["emails"]}},
        "else": {"required": ["emails"]},
    },
)


class SuppressionSerializer(RowSerializer[Suppression]):
    stream = serializers.CharField(required=False)
    optional_fields = frozenset({"stream"})

    class Meta:
        model = Suppression
        fields = ("id", "email", "reason", "createdAt", "stream")


class SuppressionListSerializer(serializers.Serializer[Any]):
    locals()["data"] = SuppressionSerializer(many=True, help_text="The suppressions, in the order of the request.")


class UnblockedSerializer(DeletedSerializer):
    email = serializers.CharField()
