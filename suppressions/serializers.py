"""Serializers of suppressions."""

from dataclasses import dataclass
from typing import Any

from rest_framework import serializers

from api.fields import AddressField, DeletedSerializer, StrictSerializer, UtcDateTimeField
from suppressions.models import Suppression

MAX_ADDRESSES = 1000


class AddressesField(serializers.ListField):
    """A list of one to MAX_ADDRESSES addresses. The length is checked before the addresses are parsed."""

    child = AddressField()
    default_error_messages = {"max_length": f"At most {MAX_ADDRESSES:,} addresses are allowed per call."}

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, list) and len(data) > MAX_ADDRESSES:
            self.fail("max_length")
        return super().to_internal_value(data)


@dataclass(frozen=True)
class SuppressionRequest:
    """The addresses to suppress. is_list: whether the response is a list."""

    addresses: tuple[str, ...]
    is_list: bool


class SuppressionInput(StrictSerializer):
    """`email` or `emails`, parsed into a SuppressionRequest. Display names are dropped."""

    email = AddressField(required=False)
    emails = AddressesField(required=False, allow_empty=False)

    def validate(self, attrs: dict[str, Any]) -> Any:
        if len(attrs) == 2:
            raise _error("emails", "Provide email or emails, not both.", code="invalid")
        if not attrs:
            raise _error("email", "Provide email, or emails for several addresses.", code="required")
        given = attrs.get("emails") or [attrs["email"]]
        return SuppressionRequest(tuple(address.spec for address in given), is_list="emails" in attrs)


class SuppressionSerializer(serializers.ModelSerializer[Suppression]):
    createdAt = UtcDateTimeField(source="created_at")  # noqa: N815

    class Meta:
        model = Suppression
        fields = ("id", "email", "reason", "createdAt")


class SuppressionListSerializer(serializers.Serializer[Any]):
    locals()["data"] = SuppressionSerializer(many=True)


class UnblockedSerializer(DeletedSerializer):
    email = serializers.CharField()


def _error(field: str, message: str, *, code: str) -> serializers.ValidationError:
    return serializers.ValidationError({field: [serializers.ErrorDetail(message, code=code)]})
