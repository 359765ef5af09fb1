"""What the serializers of every resource share: strict fields, the wire's time, refused unknown names."""

import difflib
from datetime import UTC, datetime
from typing import Any

from rest_framework import serializers
from rest_framework.validators import ProhibitSurrogateCharactersValidator

from lib.email_addresses import InvalidAddress, parse_address

# A body of a million unknown names is refused as fast as one of three.
MAX_UNKNOWN_TOLD = 20

FieldErrors = dict[str, list[serializers.ErrorDetail]]


def wire_time(moment: datetime) -> str:
    """Write a moment as `2026-11-21T06:20:00.000Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class WireTimeField(serializers.DateTimeField):
    def to_representation(self, value: Any) -> str:
        return wire_time(value)


class TextField(serializers.CharField):
    """A string that must be a string: the framework would turn 12 into "12" and cut white space off."""

    default_error_messages = {"invalid": "This must be a string."}

    def __init__(self, **options: Any) -> None:
        options.setdefault("trim_whitespace", False)
        super().__init__(**options)
        # The parser has refused surrogates; looking for them again takes 25 ms for a megabyte.
        self.validators = [one for one in self.validators if not isinstance(one, ProhibitSurrogateCharactersValidator)]

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class AddressField(TextField):
    """One address, read into an Address."""

    def to_internal_value(self, data: Any) -> Any:
        text = super().to_internal_value(data)
        try:
            return parse_address(text)
        except InvalidAddress as error:
            raise serializers.ValidationError(str(error), code="invalid_email") from error


class StrictBooleanField(serializers.BooleanField):
    """true or false; the framework would take "yes" and 1 too."""

    default_error_messages = {"invalid": "This must be true or false."}

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid")
        return data


class ObjectField(serializers.DictField):
    """A JSON object, kept as it is."""

    default_error_messages = {"not_a_dict": "This must be an object."}


class StrictSerializer(serializers.Serializer[Any]):
    """An input that refuses fields it does not know: an ignored `scheduledfor` would send at once."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            message = serializers.ErrorDetail("This must be an object.", code="invalid_type")
            raise serializers.ValidationError({"non_field_errors": [message]})
        found = self._unknown(data)
        try:
            value: dict[str, Any] = super().to_internal_value(data)
        except serializers.ValidationError as error:
            raise serializers.ValidationError({**error.detail, **found}) from error  # type: ignore[dict-item]
        if found:
            raise serializers.ValidationError(found)
        return value

    def _unknown(self, data: dict[str, Any]) -> FieldErrors:
        unknown = [name for name in data if name not in self.fields]
        return {name: [self._unknown_error(name)] for name in unknown[:MAX_UNKNOWN_TOLD]}

    def _unknown_error(self, name: str) -> serializers.ErrorDetail:
        known = {field.lower(): field for field in self.fields.keys()}  # noqa: SIM118 - typed as if it iterated values
        near = difflib.get_close_matches(name[:64].lower(), known, n=1)
        hint = f" Did you mean {known[near[0]]!r}?" if near else ""
        return serializers.ErrorDetail(f"There is no field {name[:64]!r}.{hint}", code="unknown_field")
