"""Suppressions on the wire."""

from dataclasses import dataclass
from typing import Any

from rest_framework import serializers

from api.fields import AddressField, StrictSerializer, TextField, WireTimeField
from suppressions.models import Suppression

MAX_ADDRESSES = 1000
MAX_SEARCH_LENGTH = 200


class AddressesField(serializers.ListField):
    """One to MAX_ADDRESSES addresses, counted before the first of a million is read."""

    child = AddressField()
    default_error_messages = {"max_length": f"One call takes {MAX_ADDRESSES:,} addresses."}

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, list) and len(data) > MAX_ADDRESSES:
            self.fail("max_length")
        return super().to_internal_value(data)


@dataclass(frozen=True)
class Addition:
    """What is to be blocked; is_list tells how the answer is shaped."""

    addresses: tuple[str, ...]
    is_list: bool


class SuppressionInput(StrictSerializer):
    """`email` or `emails`, read into an Addition; a display name beside an address is not kept."""

    email = AddressField(required=False)
    emails = AddressesField(required=False, allow_empty=False)

    def validate(self, attrs: dict[str, Any]) -> Any:
        if len(attrs) == 2:
            raise _error("emails", "Give email or emails, not both.", code="invalid")
        if not attrs:
            raise _error("email", "Give email, or emails for many.", code="required")
        given = attrs.get("emails") or [attrs["email"]]
        return Addition(tuple(address.spec for address in given), is_list="emails" in attrs)


class SuppressionQuery(serializers.Serializer[Any]):
    """What narrows the list."""

    reason = serializers.ChoiceField(choices=Suppression.Reason.choices, required=False)
    search = TextField(required=False, allow_blank=True, max_length=MAX_SEARCH_LENGTH)


class SuppressionSerializer(serializers.ModelSerializer[Suppression]):
    createdAt = WireTimeField(source="created_at")  # noqa: N815

    class Meta:
        model = Suppression
        fields = ("id", "email", "reason", "createdAt")


def _error(field: str, message: str, *, code: str) -> serializers.ValidationError:
    return serializers.ValidationError({field: [serializers.ErrorDetail(message, code=code)]})
