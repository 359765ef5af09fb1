"""Serializers of suppressions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rest_framework import serializers

from api.fields import (
    DeletedSerializer,
    EntriesField,
    FieldErrors,
    RecipientField,
    RowSerializer,
    StrictSerializer,
    help_texts,
)
from suppressions.models import Suppression

MAX_ADDRESSES = 1000


@dataclass(frozen=True)
class SuppressionRequest:
    """The addresses to suppress. is_list: whether the response is a list."""

    addresses: tuple[str, ...]
    is_list: bool


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

    def combination_errors(self, data: Mapping[str, Any]) -> FieldErrors:
        if "email" in data and "emails" in data:
            return {"emails": [serializers.ErrorDetail("Provide email or emails, not both.", code="invalid")]}
        if "email" not in data and "emails" not in data:
            message = "Provide email, or emails for several addresses."
            return {"email": [serializers.ErrorDetail(message, code="required")]}
        return {}

    def validate(self, attrs: dict[str, Any]) -> Any:
        addresses = attrs.get("emails") or [attrs["email"]]
        return SuppressionRequest(tuple(address.spec for address in addresses), is_list="emails" in attrs)


class SuppressionSerializer(RowSerializer[Suppression]):
    class Meta:
        model = Suppression
        fields = ("id", "email", "reason", "createdAt")
        extra_kwargs = help_texts(reason="The reason of the suppression.")


class SuppressionListSerializer(serializers.Serializer[Any]):
    locals()["data"] = SuppressionSerializer(many=True, help_text="The suppressions, in the order of the request.")


class UnblockedSerializer(DeletedSerializer):
    email = serializers.CharField()
